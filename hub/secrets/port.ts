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

/**
 * The error codes for a secret store that is unreachable and may recover by itself. An error of the secret store whose code is not in `AWAY` stays
 * until an operator acts.
 */
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
  /** True if the secret store answers but refuses, because the hub's settings or its rights in the store are wrong. */
  get isRefusal(): boolean {
    return this.code.startsWith("secret_store_") && !this.isAway;
  }
}

export type SecretData = Readonly<Record<string, string>>;
/**
 * The version of a secret; each write of a secret gives the secret a new version. Only the secret store itself understands the text of a secret's
 * version.
 */
export type SecretVersion = string & { readonly __version: never };
/** What a write of a secret expects to replace: exactly the named version of the secret, or no secret at all. */
export type Replaces = SecretVersion | "nothing";

/**
 * The store of all secrets is Vault KV v2 or a folder of sealed files (decision P3). The database holds only the paths of secrets. The hub reads a
 * secret when it uses the secret and does not keep it, so a changed secret needs no restart of the hub (lifecycle 3.2). Every method of a secret
 * store throws only `SecretError`. No method of a secret store repeats a failed call.
 */
export interface SecretStore {
  /** `read` throws `secret_missing` if nothing was written at the path, or if somebody removed the secret. */
  read(path: string): Promise<SecretData>;
  /** Reads a secret and its version. A later `write` can name the secret's version as the version to replace. */
  readVersion(path: string): Promise<{ readonly data: SecretData; readonly version: SecretVersion }>;
  /**
   * Replaces all fields of the secret at a path. When `write` returns, the secret is on durable storage. With `replaces`, `write` throws
   * `secret_conflict` and writes nothing if the path holds another version of the secret. If one writer of a path uses `replaces`, all writers of
   * that path must use it.
   */
  write(path: string, data: SecretData, replaces?: Replaces): Promise<void>;
  /** Deletes every version of a secret. `remove` does not fail at a path without a secret. */
  remove(path: string): Promise<void>;
  /** Throws the reason why the hub cannot use the secret store now. `check` returns without an error if the hub can use the secret store. */
  check(): Promise<void>;
}

/** The path of each kind of secret (lifecycle 3.2). */
export const SECRET_PATHS = {
  maasToken: (siteId: string) => `kv/maas-sites/${siteId}/api-token`,
  defaultPower: (siteId: string) => `kv/maas-sites/${siteId}/power/default`,
  powerOverride: (siteId: string, overrideId: string) => `kv/maas-sites/${siteId}/power/overrides/${overrideId}`,
  deployPassword: (siteId: string) => `kv/maas-sites/${siteId}/deploy-password`,
  /**
   * The path of a node's rendered user-data, which contains the enrollment token. The secret store holds a node's user-data from the stage
   * render_cloud_init to the stage deploy_via_maas.
   */
  userData: (nodeId: string) => `kv/nodes/${nodeId}/user-data`,
  certificateAuthority: "kv/muster/certificate-authority",
  taskSigningKey: "kv/muster/task-signing-key",
  /**
   * The paths of the CAs and task-signing keys that replace the hub's first ones. Each rotation of the hub's keys gives the new keys the next
   * generation number (decision I6). The paths of the first CA and the first task-signing key in the secret store have no generation number.
   */
  laterCertificateAuthority: (generation: number) => `kv/muster/certificate-authority-${generation}`,
  laterTaskSigningKey: (generation: number) => `kv/muster/task-signing-key-${generation}`,
  webhookSecret: (webhookId: string) => `kv/muster/webhooks/${webhookId}`,
  signalSender: (senderId: string) => `kv/muster/signal-senders/${senderId}`,
  /** The path of the secret store's id, which the database also holds. */
  storeId: "kv/muster/store-id",
} as const;
