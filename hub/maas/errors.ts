import { z } from "zod";
import type { Secret } from "../../shared/secret.ts";
import { allWithoutCredentials } from "../../shared/without-credentials.ts";
import { MaasError, type MaasErrorCode } from "./port.ts";

export interface BadAnswer {
  readonly operation: string;
  readonly method: string;
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: string;
  /**
   * The secrets in a request to MAAS must not stand in an error message. The hub removes a request's secrets from the error message, because MAAS's
   * answer may repeat them.
   */
  readonly secrets: readonly Secret[];
}

const SNIPPET_LENGTH = 300;
const FieldErrors = z.record(z.string(), z.union([z.array(z.coerce.string()), z.string().transform((text) => [text])]));
/** The number of characters of MAAS's answer that the hub searches for credentials, because an answer may have megabytes. */
const LOOKED_AT = 10_000;
const FIELD_LIMIT = 20;
const BMC_TEXT = /\bBMC\b|power action|power.*(query|fail)|ipmi/i;
/**
 * Texts by which MAAS's IPMI and Redfish drivers say that the BMC answered and refused the login. Some BMCs lock an account after several refused
 * logins.
 */
const BMC_LOGIN_TEXT =
  /\bincorrect (user ?name|password|k_g key)\b|\baccess denied\b|\b(un|not )authorized\b|\bauthentication failed\b/i;
/** The text "BMC task queue" in MAAS's answer means that MAAS knows no rack that reaches the BMC (version 3.6 and later). */
const RACK_TEXT = /rack controller|BMC task queue/i;

/**
 * Each unsuccessful answer of MAAS is mapped to an error of Muster (maas 1.3, 1.5, 2.13). For an answer 401, the error drops the answer's body,
 * because MAAS writes the token's real secret into it (decision M12).
 */
export function errorOf(answer: BadAnswer): MaasError {
  const code = codeOf(answer);
  const { snippet, fieldErrors } = code === "unauthorized" ? { snippet: "", fieldErrors: {} } : toldBy(answer);
  const retryAfterSeconds = retryAfter(answer.retryAfter);
  return new MaasError({
    code,
    operation: answer.operation,
    httpStatus: answer.status,
    message: `MAAS answered ${answer.operation} with ${answer.status}${snippet === "" ? "" : `: ${snippet}`}${hintOf(code, answer)}`,
    snippet,
    fieldErrors,
    // MAAS may answer 5xx after it has committed a change (maas 2.13).
    outcomeUnknown: answer.status >= 500 && answer.method !== "GET",
    ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }),
  });
}

const HINTS: Partial<Record<MaasErrorCode, string>> = {
  unauthorized: " (token refused). Write the site's MAAS token again, and check the hub's clock",
  forbidden: " (not allowed: the token's user is no administrator, or the machine is locked)",
  power_login_refused: ". The BMC refuses the login that the site has for it",
  no_rack: ". Connect a rack controller that reaches the BMC",
};

const hintOf = (code: MaasErrorCode, { status, operation }: BadAnswer): string =>
  status >= 300 && status < 400
    ? ". The hub follows no redirect, because that could send the token in clear text. Set api_base_url to the region's own address"
    : operation === "GET version/" && OF_NO_REGION.includes(code)
      ? ". No MAAS region answers at the site's api_base_url: correct it"
      : (HINTS[code] ?? "");
/**
 * Every MAAS region tells its version to clients without a token. A service that answers MAAS's version request with `not_found` or `bad_answer` is
 * not a MAAS region.
 */
const OF_NO_REGION: readonly MaasErrorCode[] = ["not_found", "bad_answer"];

function codeOf(answer: BadAnswer): MaasErrorCode {
  const { status, body } = answer;
  if (status === 401) return "unauthorized";
  if (status === 403) return codeOf403(answer);
  if (status === 404) return codeOf404(answer);
  if (status === 409) return answer.retryAfter === null ? "state_conflict" : "conflict_transient";
  if (status === 400) return codeOf400(answer);
  if (status === 413) return "rejected_input";
  if (status === 429 || status === 502 || status === 504) return "unavailable";
  if (status < 500) return "bad_answer";
  const plain = isHtml(answer) ? "" : body;
  if (RACK_TEXT.test(plain)) return "no_rack";
  if (BMC_TEXT.test(plain)) return BMC_LOGIN_TEXT.test(plain) ? "power_login_refused" : "power_failure";
  return status === 503 ? "unavailable" : "server_error";
}

/**
 * MAAS's own 403 is empty or plain text, so an HTML page with 403 comes from a proxy. MAAS also answers 403 to a request with an IP address outside
 * the allowed range (maas 1.5).
 */
function codeOf403(answer: BadAnswer): MaasErrorCode {
  if (isHtml(answer)) return "bad_answer";
  return /\bIP address\b|\brange\b/i.test(answer.body) ? "rejected_input" : "forbidden";
}

/** MAAS's 404 with "already in use" means that the requested IP address is taken, and not that a machine is missing (maas 2.11). */
function codeOf404(answer: BadAnswer): MaasErrorCode {
  if (/already in use/i.test(answer.body)) return "state_conflict";
  return isHtml(answer) || /Unknown API endpoint/.test(answer.body) ? "bad_answer" : "not_found";
}

/** MAAS's commission form refuses a machine in a wrong state with 400 and `__all__` (maas 2.5). */
function codeOf400(answer: BadAnswer): MaasErrorCode {
  if (isHtml(answer)) return "bad_answer";
  if (/Unrecognised signature/.test(answer.body))
    return answer.body.includes("op=None") ? "unauthorized" : "bad_answer";
  if (RACK_TEXT.test(answer.body)) return "no_rack";
  const all = fieldErrorsIn(answer.body).find(([field]) => field === "__all__")?.[1] ?? [];
  return all.some((text) => /current state of the node/.test(text)) ? "state_conflict" : "rejected_input";
}

const isHtml = (answer: BadAnswer): boolean => /^\s*</.test(answer.body);

function fieldErrorsIn(body: string): [string, string[]][] {
  try {
    const parsed = FieldErrors.safeParse(JSON.parse(body));
    if (!parsed.success) return [];
    const fields = Object.entries(parsed.data).slice(0, FIELD_LIMIT);
    return fields.map(([field, texts]) => [field, texts.slice(0, FIELD_LIMIT)]);
  } catch {
    // If the body of MAAS's error answer is not JSON, the answer names no wrong fields.
    return [];
  }
}

function toldBy(answer: BadAnswer): { snippet: string; fieldErrors: Record<string, string[]> } {
  const fields = fieldErrorsIn(answer.body);
  const body = isHtml(answer) ? "an HTML page" : answer.body;
  const texts = [...new Set([body, ...fields.flat(2)])];
  const clean = allWithoutCredentials(
    texts.map((text) => text.slice(0, LOOKED_AT)),
    answer.secrets,
  ).map(onOneLine);
  const cleanOf = new Map(texts.map((text, index) => [text, clean[index] ?? ""]));
  const told = (text: string): string => cleanOf.get(text) ?? "";
  return {
    snippet: told(body),
    fieldErrors: Object.fromEntries(fields.map(([field, said]) => [told(field), said.map(told)])),
  };
}

function retryAfter(header: string | null): number | null {
  const seconds = Number(header);
  return header !== null && Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3600) : null;
}

/** Puts a text on one line of bounded length, without control characters. */
const onOneLine = (text: string): string =>
  text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, SNIPPET_LENGTH)
    .toWellFormed();
