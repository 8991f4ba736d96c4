import { z } from "zod";

/**
 * All error codes of the hub's APIs, each with its HTTP status and title (decision P4, RFC 9457). Error codes of the API never change, because
 * clients compare codes. The `detail` of an error answer says what happened, to which object, and what to do next.
 */
export const API_ERRORS = {
  validation_failed: { status: 400, title: "The request is not valid" },
  malformed_json: { status: 400, title: "The body is not JSON" },
  unauthenticated: { status: 401, title: "No valid credentials" },
  token_unknown: { status: 401, title: "The enrollment token is not known" },
  token_used: { status: 401, title: "The enrollment token was used already" },
  token_expired: { status: 401, title: "The enrollment token has expired" },
  token_of_another_node: { status: 403, title: "The enrollment token belongs to another node" },
  csr_invalid: { status: 400, title: "The certificate request is not acceptable" },
  csr_name_mismatch: { status: 403, title: "The certificate request names another node" },
  certificate_required: { status: 401, title: "A client certificate is required" },
  certificate_rejected: { status: 403, title: "The client certificate is not accepted" },
  certificate_replaced: { status: 403, title: "The client certificate was replaced" },
  certificate_barred: { status: 403, title: "Two hosts used the node's identity" },
  node_deleted: { status: 410, title: "The node was deleted" },
  protocol_unsupported: { status: 426, title: "The agent protocol version is not supported" },
  forbidden: { status: 403, title: "Not allowed" },
  no_role: { status: 403, title: "Signed in, but without a role" },
  groups_left_out: { status: 403, title: "The provider left out the groups" },
  cross_site: { status: 403, title: "The request did not come from the hub's own page" },
  two_credentials: { status: 400, title: "The request has two credentials" },
  not_found: { status: 404, title: "No such resource" },
  method_not_allowed: { status: 405, title: "The method is not allowed here" },
  conflict: { status: 409, title: "The request conflicts with the current state" },
  name_taken: { status: 409, title: "The name is taken" },
  onboarding_exists: { status: 409, title: "An onboarding already holds this host" },
  operation_exists: { status: 409, title: "Another operation holds this node" },
  allocation_exists: { status: 409, title: "A tenant uses this node" },
  node_not_schedulable: { status: 409, title: "The node takes no new work" },
  count_mismatch: { status: 409, title: "The filter matches another number of nodes" },
  no_free_node: { status: 409, title: "No node of the SKU is free" },
  approval_required: { status: 409, title: "A second person must approve the request" },
  approval_unusable: { status: 409, title: "The approval does not allow this request" },
  own_approval: { status: 403, title: "Nobody approves their own request" },
  session_stale: { status: 409, title: "A newer session of this node exists" },
  position_gone: { status: 410, title: "The events after this position are gone" },
  precondition_failed: { status: 412, title: "The resource was changed meanwhile" },
  precondition_required: { status: 428, title: "If-Match is required" },
  body_too_large: { status: 413, title: "The body is too large" },
  unsupported_media_type: { status: 415, title: "The content type is not supported" },
  idempotency_key_reused: { status: 422, title: "The Idempotency-Key was used for another request" },
  sku_unknown: { status: 422, title: "The SKU is not known" },
  site_disabled: { status: 422, title: "The site is disabled" },
  profile_disabled: { status: 422, title: "The profile is disabled" },
  reference_unknown: { status: 422, title: "A resource that the request names does not exist" },
  pattern_endless: { status: 422, title: "A search by the pattern does not end" },
  site_unusable: { status: 422, title: "The site did not pass its probe" },
  verb_not_allowed: { status: 409, title: "The workflow's status does not allow this action" },
  rate_limited: { status: 429, title: "Too many requests" },
  internal_error: { status: 500, title: "The hub failed" },
  unavailable: { status: 503, title: "Not available right now" },
} as const satisfies Record<string, { status: number; title: string }>;
export type ApiErrorCode = keyof typeof API_ERRORS;

/**
 * The body of an HTTP answer of the type `application/problem+json`. In the body of an error answer, each entry of `errors` names an invalid field of
 * the request with a JSON pointer.
 */
export const Problem = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.enum(Object.keys(API_ERRORS) as [ApiErrorCode, ...ApiErrorCode[]]),
  detail: z.string(),
  instance: z.string().optional(),
  request_id: z.string().optional(),
  errors: z.array(z.strictObject({ pointer: z.string(), message: z.string() })).optional(),
  /** Machine-readable values in an error answer, for example the id of the onboarding that already holds a host. */
  context: z.record(z.string(), z.string()).optional(),
});
export type Problem = z.output<typeof Problem>;

/**
 * The error that routes and services of the hub's API throw. The hub turns every `ApiError` into the body of an error answer (`Problem`) in one
 * place.
 */
export class ApiError extends Error {
  readonly code: ApiErrorCode;
  readonly errors: Problem["errors"];
  readonly context: Problem["context"];
  /** The header Retry-After of a refusal says after how many seconds the client may repeat the refused request. */
  readonly retryAfterSeconds: number | undefined;
  constructor(
    code: ApiErrorCode,
    detail: string,
    more: {
      errors?: Problem["errors"];
      context?: Problem["context"];
      retryAfterSeconds?: number;
      cause?: unknown;
    } = {},
  ) {
    super(detail, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "ApiError";
    this.code = code;
    this.errors = more.errors;
    this.context = more.context;
    this.retryAfterSeconds = more.retryAfterSeconds;
  }
}

export const PROBLEM_TYPE = "application/problem+json";

/** Makes the body of an error answer (RFC 9457) for every HTTP listener of the hub. */
export function problemBody(error: ApiError, request: Pick<Problem, "instance" | "request_id"> = {}): Problem {
  const { status, title } = API_ERRORS[error.code];
  return {
    type: `urn:muster:problem:${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    ...request,
    ...(error.errors === undefined ? {} : { errors: error.errors }),
    ...(error.context === undefined ? {} : { context: error.context }),
  };
}
