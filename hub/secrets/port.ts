/** Closed set of what can go wrong with the secret store. */
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

/** The store is away and may come back by itself; anything else stays until somebody acts. */
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
  /** The store answers and refuses: the hub's settings, or what the store grants it, are wrong. */
  get isRefusal(): boolean {
    return this.code.startsWith("secret_store_") && !this.isAway;
  }
}

export type SecretData = Readonly<Record<string, string>>;
/** Names one value of a secret: each write makes another. Its text means something to its own store alone. */
export type SecretVersion = string & { readonly __version: never };
/** What a write expects to replace: that version and no later one, or nothing at all. */
export type Replaces = SecretVersion | "nothing";

/**
 * Where secrets lie (decision P3): Vault KV v2, or sealed files. The database holds paths only. Values are read when they are used and
 * never kept past it, so a rotation needs no restart (lifecycle 3.2). Every method throws `SecretError` only. None retries.
 */
export interface SecretStore {
  /** Throws `secret_missing` when nothing was written there or it was removed. */
  read(path: string): Promise<SecretData>;
  /** As `read`, with the version that a write may name. */
  readVersion(path: string): Promise<{ readonly data: SecretData; readonly version: SecretVersion }>;
  /**
   * Replaces all fields at the path; durable when it returns. With `replaces` it is check-and-set: `secret_conflict`, and nothing is written, when the
   * path holds something else by then. A path that is changed so is changed so by everybody.
   */
  write(path: string, data: SecretData, replaces?: Replaces): Promise<void>;
  /** Forgets every version. Removing what is not there is no error. */
  remove(path: string): Promise<void>;
  /** Throws what keeps the store from being used right now, whatever the path. */
  check(): Promise<void>;
}

/** Which path holds what (lifecycle 3.2). */
export const SECRET_PATHS = {
  maasToken: (siteId: string) => `kv/maas-sites/${siteId}/api-token`,
  defaultPower: (siteId: string) => `kv/maas-sites/${siteId}/power/default`,
  powerOverride: (siteId: string, overrideId: string) => `kv/maas-sites/${siteId}/power/overrides/${overrideId}`,
  deployPassword: (siteId: string) => `kv/maas-sites/${siteId}/deploy-password`,
  /** Rendered user-data between render_cloud_init and deploy_via_maas; it carries the enrollment token. */
  userData: (nodeId: string) => `kv/nodes/${nodeId}/user-data`,
  certificateAuthority: "kv/muster/certificate-authority",
  taskSigningKey: "kv/muster/task-signing-key",
  /** Of generations after the first, by number (decision I6). */
  laterCertificateAuthority: (generation: number) => `kv/muster/certificate-authority-${generation}`,
  laterTaskSigningKey: (generation: number) => `kv/muster/task-signing-key-${generation}`,
  webhookSecret: (webhookId: string) => `kv/muster/webhooks/${webhookId}`,
  /** Id of this store, which the database knows too. */
  storeId: "kv/muster/store-id",
} as const;
