import { type Failure, type FailureClass, type FailureCode, failure, ruleOf } from "../../shared/failures.ts";
import { BmcError, type BmcErrorCode } from "../bmc/port.ts";
import { isDatabaseAway } from "../db/away.ts";
import { MaasError, type MaasErrorCode } from "../maas/port.ts";
import { SecretError, type SecretErrorCode } from "../secrets/port.ts";
import type { ClassifyError } from "./engine/execute.ts";
import { StageFailure } from "./stage-failure.ts";

const MESSAGE_LIMIT = 500;
const SETTLE_SECONDS = 10;

type Target = { readonly [C in FailureClass]: readonly [C, FailureCode<C>] }[FailureClass];

/** The failure class and code for each MAAS error. A stage that needs another failure class for a MAAS error catches the error itself. */
const MAAS: Readonly<Record<MaasErrorCode, Target>> = {
  unreachable: ["upstream_transient", "maas_unreachable"],
  timeout: ["upstream_transient", "maas_timeout"],
  unauthorized: ["site_capability_missing", "maas_token_rejected"],
  forbidden: ["site_capability_missing", "maas_forbidden"],
  not_found: ["state_ambiguity", "machine_vanished"],
  rejected_input: ["input_config_error", "maas_rejected_input"],
  state_conflict: ["state_ambiguity", "unexpected_maas_status"],
  conflict_transient: ["upstream_transient", "maas_conflict_transient"],
  unavailable: ["upstream_transient", "maas_unavailable"],
  power_failure: ["bmc_power_failure", "power_action_failed"],
  power_login_refused: ["bmc_power_failure", "bmc_login_refused"],
  no_rack: ["bmc_power_failure", "bmc_unreachable"],
  server_error: ["upstream_transient", "maas_server_error"],
  bad_answer: ["upstream_transient", "maas_bad_answer"],
};

/**
 * The failure class and code for each error of the secret store. The engine waits for an unavailable secret store, but a person must act if the
 * secret store refuses a request.
 */
const SECRETS: Readonly<Record<SecretErrorCode, Target>> = {
  secret_missing: ["site_capability_missing", "secret_missing"],
  secret_corrupt: ["site_capability_missing", "secret_corrupt"],
  secret_conflict: ["upstream_transient", "secret_conflict"],
  secret_store_unavailable: ["upstream_transient", "secret_store_unavailable"],
  secret_store_timeout: ["upstream_transient", "secret_store_timeout"],
  secret_store_sealed: ["upstream_transient", "secret_store_sealed"],
  secret_store_forbidden: ["site_capability_missing", "secret_store_forbidden"],
  secret_store_login_refused: ["site_capability_missing", "secret_store_login_refused"],
  secret_store_untrusted: ["site_capability_missing", "secret_store_untrusted"],
  secret_store_misconfigured: ["site_capability_missing", "secret_store_misconfigured"],
};

/** The failure code for each error of the hub's own BMC commands. The engine does not retry a refused BMC login, because BMCs lock accounts. */
const BMC: Readonly<Record<BmcErrorCode, FailureCode<"bmc_power_failure">>> = {
  no_answer: "bmc_no_answer",
  login_refused: "bmc_login_refused",
  action_failed: "power_action_failed",
  untrusted: "bmc_untrusted",
  tool_missing: "bmc_tool_missing",
};

/**
 * Only `classifyError` decides the failure class of an error that a stage threw. For a fault of the hub's own database `classifyError` returns null,
 * because a database fault says nothing about the stage.
 */
export const classifyError: ClassifyError = (error) => {
  if (isDatabaseAway(error)) return null;
  if (error instanceof StageFailure) return { failure: error.failure, retryAfterSeconds: null };
  if (error instanceof MaasError) return { failure: ofMaas(error), retryAfterSeconds: pauseAfter(error) };
  if (error instanceof SecretError) return { failure: ofSecrets(error), retryAfterSeconds: null };
  if (error instanceof BmcError) return { failure: ofBmc(error), retryAfterSeconds: null };
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : "an unknown fault";
  const message = `The hub failed inside the stage (${detail.slice(0, MESSAGE_LIMIT)}). Read the hub's log, then retry.`;
  return { failure: failure("upstream_transient", "hub_internal_error", message), retryAfterSeconds: null };
};

const retryOf = (error: unknown) => {
  const met = classifyError(error);
  return met === null ? null : ruleOf(met.failure).retry;
};
/**
 * True if the error means only that a service such as MAAS is unavailable. If `isAway` is true for an error, a stage concludes nothing from the error
 * about the machine or the host.
 */
export const isAway = (error: unknown): boolean => retryOf(error) === "until_deadline";
/** True if a second call would fail in the same way as the call that threw the error. */
export const isFinal = (error: unknown): boolean => retryOf(error) === "never";

/**
 * MAAS may still carry out a call that MAAS did not answer in time. After a call that MAAS did not answer, the stage pauses, and reads the present
 * state before it repeats the call (decision M13).
 */
function pauseAfter(error: MaasError): number | null {
  const unanswered = error.outcomeUnknown && (error.code === "timeout" || error.code === "unreachable");
  return unanswered ? Math.max(SETTLE_SECONDS, error.retryAfterSeconds ?? 0) : error.retryAfterSeconds;
}

function ofMaas(error: MaasError): Failure {
  const [cls, code] = MAAS[error.code];
  const fields = Object.entries(error.fieldErrors).map(([field, messages]) => `${field}: ${messages.join(" ")}`);
  return {
    class: cls,
    code,
    message: error.message.slice(0, MESSAGE_LIMIT),
    evidence: {
      maas_operation: error.operation,
      maas_error: error.code,
      maas_http_status: error.httpStatus,
      maas_outcome_unknown: error.outcomeUnknown,
      ...(error.snippet === "" ? {} : { maas_snippet: error.snippet.slice(0, MESSAGE_LIMIT) }),
      ...(fields.length === 0 ? {} : { maas_field_errors: fields.join("; ").slice(0, MESSAGE_LIMIT) }),
    },
  } as Failure;
}

const ofBmc = ({ code, driver, address, message }: BmcError): Failure =>
  failure("bmc_power_failure", BMC[code], message.slice(0, MESSAGE_LIMIT), {
    bmc_address: address,
    bmc_driver: driver,
  });

function ofSecrets(error: SecretError): Failure {
  const [cls, code] = SECRETS[error.code];
  const evidence = { secret_path: error.path, secret_error: error.code };
  return { class: cls, code, message: error.message.slice(0, MESSAGE_LIMIT), evidence } as Failure;
}
