/**
 * The delays in seconds between two attempts to deliver an event. The first delays between attempts to deliver an event are short, for a receiver
 * that only restarts. The last delays between attempts are long, so that a receiver that was down for a day still gets the event.
 */
const SCHEDULE = [5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000] as const;
export const MOST_ATTEMPTS = SCHEDULE.length + 1;
const JITTER = 0.2;
const LONGEST_RETRY_AFTER = 86_400;

/**
 * The result of an attempt to deliver an event: the HTTP status and header Retry-After of the receiver's answer, or the reason why no answer came.
 */
export type Attempted =
  | { readonly answered: true; readonly status: number; readonly retryAfterSeconds: number | null }
  | { readonly answered: false; readonly reason: string };

export type Verdict =
  | { readonly kind: "delivered" }
  /** The hub repeats the delivery of the event `inSeconds` seconds from now. */
  | { readonly kind: "retry"; readonly inSeconds: number }
  | { readonly kind: "dead" }
  /** The webhook's receiver answered 410, which means that it wants no further events (Standard Webhooks). */
  | { readonly kind: "gone" };

/**
 * Returns the delay in seconds that a header `Retry-After` requests by a number or an HTTP date. `retryAfterSeconds` returns null if the header is
 * missing or cannot be parsed.
 */
export function retryAfterSeconds(header: string | undefined, now: Date): number | null {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text);
  const at = / GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, (at - now.getTime()) / 1000);
}

/**
 * Decides whether an attempt has delivered its event, and when the hub makes the next attempt. The argument `attempt` counts the attempts to deliver
 * the event, beginning with 1. `random` is a random number in [0, 1) that varies the delay before the next attempt.
 */
export function judgeAttempt(attempted: Attempted, attempt: number, random: number): Verdict {
  if (attempted.answered && attempted.status >= 200 && attempted.status < 300) return { kind: "delivered" };
  if (attempted.answered && attempted.status === 410) return { kind: "gone" };
  const step = SCHEDULE[attempt - 1];
  if (step === undefined) return { kind: "dead" };
  const jittered = step * (1 - JITTER + 2 * JITTER * random);
  const asked = attempted.answered ? Math.min(attempted.retryAfterSeconds ?? 0, LONGEST_RETRY_AFTER) : 0;
  return { kind: "retry", inSeconds: Math.max(jittered, asked) };
}

export const reasonOf = (attempted: Attempted): string =>
  attempted.answered ? `The receiver answered ${attempted.status}` : attempted.reason;
