export interface VaultReply {
  readonly status: number;
  readonly body: unknown;
}

export class VaultFault extends Error {
  readonly status: number;
  readonly errors: readonly string[];
  /** Vault's answer 404 contains the metadata of a deleted version, or a warning about an unknown path. */
  readonly body: Record<string, unknown>;
  constructor(status: number, errors: readonly string[], body: Record<string, unknown> = {}) {
    super(errors.join("; "));
    this.status = status;
    this.errors = errors;
    this.body = body;
  }
}

/** Vault's error for a token that does not exist or has expired. */
export const permissionDenied = (): VaultFault => new VaultFault(403, ["permission denied"]);
/** Vault's error for a token whose policies do not allow the requested path. */
export const forbidden = (): VaultFault => new VaultFault(403, ["1 error occurred:\n\t* permission denied\n\n"]);
export const noToken = (status: 400 | 500 = 400): VaultFault => new VaultFault(status, ["missing client token"]);
export const notFound = (): VaultFault => new VaultFault(404, []);
export const noHandler = (path: string): VaultFault => new VaultFault(404, [`no handler for route '${path}'`]);
export const invalid = (error: string): VaultFault => new VaultFault(400, [error]);
export const unsupported = (): VaultFault => new VaultFault(405, ["unsupported operation"]);

/** Returns data within the fields that Vault puts around the data of an answer. */
export const dataReply = (data: unknown): VaultReply => ({
  status: 200,
  body: {
    request_id: "00000000-0000-0000-0000-000000000000",
    lease_id: "",
    renewable: false,
    lease_duration: 0,
    data,
    wrap_info: null,
    warnings: null,
    auth: null,
  },
});
export const noContent: VaultReply = { status: 204, body: null };
/** Vault's answer to a request for a path that the secrets engine does not have. */
export const warned = (warning: string): VaultFault =>
  new VaultFault(404, [], { ...(dataReply(null).body as Record<string, unknown>), warnings: [warning] });
