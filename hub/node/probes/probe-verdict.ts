import type { Probe } from "../../../shared/probes.ts";
import type { ConditionStatus } from "../../../shared/readiness.ts";

/** How a host can fail a probe. Each name of a probe failure is also the reason of the condition that the node gets. */
export type ProbeFailure =
  | "Refused"
  | "TimedOut"
  | "Unreachable"
  | "NameNotResolved"
  | "ClosedEarly"
  | "WrongBanner"
  | "WrongStatus"
  | "TlsFailed"
  | "NoHttpAnswer";

/** What one probe has found. `saw` is a sentence for people. */
export type ProbeOutcome =
  | { readonly kind: "passed"; readonly saw: string }
  | { readonly kind: "failed"; readonly reason: ProbeFailure; readonly saw: string }
  /** A probe can find out nothing about the host, because there is no address that the hub may connect to. */
  | { readonly kind: "unknown"; readonly reason: "NoAddress" | "AddressRefused"; readonly saw: string }
  /** The hub itself could not make the probe, so nothing is known about the host. */
  | { readonly kind: "not_tried"; readonly saw: string };
export type ProbeResult = Exclude<ProbeOutcome, { readonly kind: "not_tried" }>;

/** The present status of a probe, and how many of its latest results in a row were successes or failures. One of `successes` and `failures` is 0. */
export interface Counted {
  readonly status: ConditionStatus;
  readonly successes: number;
  readonly failures: number;
}

/** The counts of successes and failures for a probe that has no result yet, or whose earlier results no longer count. */
export const UNCOUNTED: Counted = { status: "Unknown", successes: 0, failures: 0 };

/**
 * Counts a result. The status of a probe changes only after as many equal results in a row as the probe asks for, so before enough results a new
 * probe is Unknown. For a host without an address that the hub may probe, the status becomes Unknown at once.
 */
export function countResult(
  before: Counted,
  { kind }: Pick<ProbeResult, "kind">,
  thresholds: Pick<Probe, "successes" | "failures">,
): Counted {
  if (kind === "unknown") return UNCOUNTED;
  if (kind === "passed") {
    const successes = Math.min(before.successes + 1, thresholds.successes);
    return { status: successes === thresholds.successes ? "True" : before.status, successes, failures: 0 };
  }
  const failures = Math.min(before.failures + 1, thresholds.failures);
  return { status: failures === thresholds.failures ? "False" : before.status, successes: 0, failures };
}

export interface ToldResult {
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/**
 * Returns the condition that the node has after a result of a probe. While the latest results contradict the condition's status, the condition's
 * reason says so, and its message gives the number of these results.
 */
export function toldResult(
  { status, successes, failures }: Counted,
  result: ProbeResult,
  thresholds: Pick<Probe, "successes" | "failures">,
): ToldResult {
  if (result.kind === "unknown") return { status, reason: result.reason, message: result.saw };
  const passed = result.kind === "passed";
  if (status === (passed ? "True" : "False"))
    return { status, reason: passed ? "Answered" : result.reason, message: result.saw };
  const counted = passed
    ? `${successes} of the ${thresholds.successes} successes in a row that make the condition True`
    : `${failures} of the ${thresholds.failures} failures in a row that make the condition False`;
  const reason = status === "Unknown" ? "Probing" : passed ? "Recovering" : "Failing";
  return { status, reason, message: `${result.saw} These are ${counted}.` };
}
