/** Closed set of what can go wrong with the secret store; `secret_missing` is the only one that waiting does not heal. */
export const SECRET_ERRORS = [
  "secret_missing",
  "secret_store_unavailable",
  "secret_store_sealed",
  "secret_store_forbidden",
  "secret_corrupt",
] as const;
export type SecretErrorCode = (typeof SECRET_ERRORS)[number];

export class SecretError extends Error {
  readonly code: SecretErrorCode;
  readonly path: string;
  constructor(code: SecretErrorCode, path: string, detail: string, cause?: unknown) {
    super(`${detail} (secret path ${path})`, cause === undefined ? undefined : { cause });
    this.name = "SecretError";
    this.code = code;
    this.path = path;
  }
}

export type SecretData = Readonly<Record<string, string>>;

/**
 * Where secrets lie (decision P3): Vault KV v2, or a sealed file. The database holds paths only. Values are read when they are used and
 * never kept past it, so a rotation needs no restart (lifecycle 3.2). Every method throws `SecretError` only.
 */
export interface SecretStore {
  /** Throws `secret_missing` when nothing was written there or it was removed. */
  read(path: string): Promise<SecretData>;
  /** Replaces all fields at the path; durable when it returns. */
  write(path: string, data: SecretData): Promise<void>;
  /** Removing what is not there is no error. */
  remove(path: string): Promise<void>;
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
  webhookSecret: (webhookId: string) => `kv/muster/webhooks/${webhookId}`,
  /** Id of this store, which the database knows too. */
  storeId: "kv/muster/store-id",
} as const;
