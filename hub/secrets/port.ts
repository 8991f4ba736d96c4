/** The closed set of errors of the secret store. */
export const SECRET_ERRORS = [
  "secret_missing",
  "secret_corrupt",
  "secret_conflict",
  "secret_store_unavailable",
  "secret_store_timeout",
  "secret_store_sealed",
  "secret_store_forbidden",
  "secret_store_login_refused",
  "secret_store_untrusted",
  "secret_store_misconfigured",
] as const;
export type SecretErrorCode = (typeof SECRET_ERRORS)[number];

/** The store is unreachable and may recover by itself. Every other error stays until somebody acts. */
const AWAY: ReadonlySet<SecretErrorCode> = new Set([
  "secret_store_unavailable",
  "secret_store_timeout",
  "secret_store_sealed",
]);

export class SecretError extends Error {
  readonly code: SecretErrorCode;
  readonly path: string;
  constructor(code: SecretErrorCode, path: string, detail: string, cause?: unknown) {
    super(`${detail} (secret path ${path})`, cause === undefined ? undefined : { cause });
    this.name = "SecretError";
    this.code = code;
    this.path = path;
  }
  get isAway(): boolean {
    return AWAY.has(this.code);
  }
  /** The store answers and refuses: the hub's settings, or its rights in the store, are wrong. */
  get isRefusal(): boolean {
    return this.code.startsWith("secret_store_") && !this.isAway;
  }
}

export type SecretData = Readonly<Record<string, string>>;
/** The version of a secret: each write makes a new one. Only the store itself understands its text. */
export type SecretVersion = string & { readonly __version: never };
/** What a write expects to replace: exactly this version, or nothing at all. */
export type Replaces = SecretVersion | "nothing";

/**
 * The store of all secrets (decision P3): Vault KV v2, or sealed files. The database holds only paths. Values are read when they are used and
 * not kept afterwards, so a rotation needs no restart (lifecycle 3.2). Every method throws only `SecretError`. No method retries.
 */
export interface SecretStore {
  /** Throws `secret_missing` if nothing was written at the path or it was removed. */
  read(path: string): Promise<SecretData>;
  /** Like `read`, and also returns the version, which a later write can name as the one to replace. */
  readVersion(path: string): Promise<{ readonly data: SecretData; readonly version: SecretVersion }>;
  /**
   * Replaces all fields at the path; the write is durable when the call returns. With `replaces` the write is conditional: if the path does not hold
   * the version that `replaces` names, nothing is written and the error is `secret_conflict`. If one writer of a path uses `replaces`, all writers of
   * that path must.
   */
  write(path: string, data: SecretData, replaces?: Replaces): Promise<void>;
  /** Deletes every version. Removing a path that does not exist is no error. */
  remove(path: string): Promise<void>;
  /** Throws the reason why the store cannot be used now, whatever the path. */
  check(): Promise<void>;
}

/** The path of each kind of secret (lifecycle 3.2). */
export const SECRET_PATHS = {
  maasToken: (siteId: string) => `kv/maas-sites/${siteId}/api-token`,
  defaultPower: (siteId: string) => `kv/maas-sites/${siteId}/power/default`,
  powerOverride: (siteId: string, overrideId: string) => `kv/maas-sites/${siteId}/power/overrides/${overrideId}`,
  deployPassword: (siteId: string) => `kv/maas-sites/${siteId}/deploy-password`,
  /** Rendered user-data between render_cloud_init and deploy_via_maas; it carries the enrollment token. */
  userData: (nodeId: string) => `kv/nodes/${nodeId}/user-data`,
  certificateAuthority: "kv/muster/certificate-authority",
  taskSigningKey: "kv/muster/task-signing-key",
  /** The keys of generations after the first one, by number (decision I6). */
  laterCertificateAuthority: (generation: number) => `kv/muster/certificate-authority-${generation}`,
  laterTaskSigningKey: (generation: number) => `kv/muster/task-signing-key-${generation}`,
  webhookSecret: (webhookId: string) => `kv/muster/webhooks/${webhookId}`,
  /** The id of this store, which the database also holds. */
  storeId: "kv/muster/store-id",
} as const;
