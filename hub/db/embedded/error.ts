const EMBEDDED_ERROR_CODES = [
  "binaries_missing",
  "home_unreadable",
  "data_version_mismatch",
  "initialisation_failed",
  "start_failed",
  "start_timed_out",
  "stop_timed_out",
  "launch_locked",
  "unprivileged_user_missing",
  "unprivileged_user_shared",
  "data_owner_unknown",
  "data_in_use",
  "password_refused",
] as const;

export type EmbeddedErrorCode = (typeof EMBEDDED_ERROR_CODES)[number];

/** The message of an `EmbeddedPostgresError` tells the operator what to do, and never contains the password or the URL. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
  readonly code: EmbeddedErrorCode;
  constructor(code: EmbeddedErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
