import { z } from "zod";
import { MaasError, type MaasErrorCode } from "./port.ts";

/** An answer of MAAS that is not a success, as far as it is looked at. */
export interface BadAnswer {
  readonly operation: string;
  readonly method: string;
  readonly status: number;
  readonly contentType: string;
  readonly retryAfter: string | null;
  readonly body: string;
}

const SNIPPET_LENGTH = 300;
const FieldErrors = z.record(z.string(), z.union([z.array(z.coerce.string()), z.string().transform((text) => [text])]));
const BMC_TEXT = /\bBMC\b|power action|power.*(query|fail)|ipmi/i;

/**
 * What an answer means (contract 1.3, 1.5, 2.13). Total: every status code and body is exactly one MaasError. A 401's body is dropped here
 * and goes nowhere: MAAS writes the token's real secret into it (decision M12).
 */
export function errorOf(answer: BadAnswer): MaasError {
  const code = codeOf(answer);
  const snippet = code === "unauthorized" ? "" : sanitize(answer);
  const retryAfterSeconds = retryAfter(answer.retryAfter);
  const fieldErrors = code === "rejected_input" || code === "state_conflict" ? parseFieldErrors(answer) : {};
  return new MaasError({
    code,
    operation: answer.operation,
    httpStatus: answer.status,
    message: `MAAS answered ${answer.operation} with ${answer.status}${snippet === "" ? "" : `: ${snippet}`}${HINTS[code] ?? ""}`,
    snippet,
    fieldErrors,
    // A 5xx may come after the change was committed (contract 2.13).
    outcomeUnknown: answer.status >= 500 && answer.method !== "GET",
    ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }),
  });
}

const HINTS: Partial<Record<MaasErrorCode, string>> = {
  unauthorized: " (token refused). Write the site's MAAS token again, and check the hub's clock",
  forbidden: " (not allowed: the token's user is no administrator, or the machine is locked)",
  no_rack: ". Connect a rack controller that reaches the BMC",
};

function codeOf(answer: BadAnswer): MaasErrorCode {
  const { status, body } = answer;
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return codeOf404(answer);
  if (status === 409) return answer.retryAfter === null ? "state_conflict" : "conflict_transient";
  if (status === 400) return codeOf400(answer);
  if (status === 413) return "rejected_input";
  if (status === 503) return BMC_TEXT.test(body) ? "power_failure" : /rack/i.test(body) ? "no_rack" : "unavailable";
  if (status === 429 || status === 502 || status === 504) return "unavailable";
  if (status >= 500) return BMC_TEXT.test(body) ? "power_failure" : "server_error";
  return "bad_answer";
}

/** "Already in use" comes as 404 (contract 2.11) and is about the address, not about a missing machine. */
function codeOf404(answer: BadAnswer): MaasErrorCode {
  if (/already in use/i.test(answer.body)) return "state_conflict";
  return isHtml(answer) || /Unknown API endpoint/.test(answer.body) ? "bad_answer" : "not_found";
}

/** The commission form refuses a wrong state with 400 and `__all__` (contract 2.5). */
function codeOf400(answer: BadAnswer): MaasErrorCode {
  if (isHtml(answer)) return "bad_answer";
  if (/Unrecognised signature/.test(answer.body))
    return answer.body.includes("op=None") ? "unauthorized" : "bad_answer";
  const all = parseFieldErrors(answer)["__all__"] ?? [];
  return all.some((text) => /current state of the node/.test(text)) ? "state_conflict" : "rejected_input";
}

const isHtml = (answer: BadAnswer): boolean => /^\s*</.test(answer.body);

function parseFieldErrors(answer: BadAnswer): Record<string, string[]> {
  try {
    const parsed = FieldErrors.safeParse(JSON.parse(answer.body));
    return parsed.success ? parsed.data : {};
  } catch {
    // Plain text: there are no fields.
    return {};
  }
}

function retryAfter(header: string | null): number | null {
  const seconds = Number(header);
  return header !== null && Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3600) : null;
}

function sanitize(answer: BadAnswer): string {
  if (isHtml(answer)) return "an HTML page";
  return answer.body
    .replace(/\s+/g, " ")
    .replace(/((?:secret|password|pass|token|signature)\w*["']?\s*[:=]\s*["']?)[^\s"',}]+/gi, "$1[redacted]")
    .trim()
    .slice(0, SNIPPET_LENGTH);
}
