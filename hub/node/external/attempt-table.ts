import type { ExternalState } from "../../../shared/external-attempt.ts";

/** What an external system, a person or the hub's clock says about an attempt. */
export const ATTEMPT_INPUTS = [
  "progress",
  "complete",
  "fail",
  "abandon",
  "lease_passed",
  "deadline_passed",
  "ready",
] as const;
export type AttemptInput = (typeof ATTEMPT_INPUTS)[number];
/** The inputs to an attempt that come by a request; the hub itself finds the other inputs, such as a passed deadline. */
export type AttemptReport = Extract<AttemptInput, "progress" | "complete" | "fail" | "abandon">;

/**
 * The effect of an input on an attempt. `repeated` means that the input had its effect before, so a repeated request is no error. `ignored` means
 * that the input says nothing about an attempt in this state. Only an input that comes by a request can be `refused`, and `WHY_REFUSED` tells the
 * reason.
 */
export type AttemptEffect =
  | { readonly kind: "moved"; readonly to: ExternalState }
  | { readonly kind: "repeated" }
  | { readonly kind: "ignored" }
  | { readonly kind: "refused"; readonly why: RefusedBecause };

export const WHY_REFUSED = {
  completed_before: "its external system has reported its completion already",
  in_service: "its host is in service; begin a new attempt to provision the host again",
  failed_before: "its external system has reported its failure; begin a new attempt",
  deadline_passed: "its deadline has passed; report its completion or failure, or begin a new attempt",
  abandoned: "it was abandoned; begin a new attempt",
} as const;
export type RefusedBecause = keyof typeof WHY_REFUSED;

const to = (state: ExternalState): AttemptEffect => ({ kind: "moved", to: state });
const refused = (why: RefusedBecause): AttemptEffect => ({ kind: "refused", why });
const repeated: AttemptEffect = { kind: "repeated" };
const ignored: AttemptEffect = { kind: "ignored" };

/**
 * The whole state machine of an attempt. Two rules explain its rows. Until a newer attempt begins, a late completion counts: an external system that was
 * silent for too long may still have provisioned the host, and nothing may stay stuck because a message came late. No input of an external system
 * makes a host ready, because only the conditions of the node do.
 */
export const ATTEMPT_TABLE: Readonly<Record<ExternalState, Readonly<Record<AttemptInput, AttemptEffect>>>> = {
  begun: {
    progress: to("in_progress"),
    complete: to("verifying"),
    fail: to("failed"),
    abandon: to("abandoned"),
    lease_passed: to("lost"),
    deadline_passed: to("late"),
    ready: ignored,
  },
  in_progress: {
    progress: to("in_progress"),
    complete: to("verifying"),
    fail: to("failed"),
    abandon: to("abandoned"),
    lease_passed: to("lost"),
    deadline_passed: to("late"),
    ready: ignored,
  },
  verifying: {
    progress: refused("completed_before"),
    complete: repeated,
    fail: to("failed"),
    abandon: to("abandoned"),
    lease_passed: ignored,
    deadline_passed: to("unverified"),
    ready: to("completed"),
  },
  completed: {
    progress: refused("in_service"),
    complete: repeated,
    fail: refused("in_service"),
    abandon: refused("in_service"),
    lease_passed: ignored,
    deadline_passed: ignored,
    ready: ignored,
  },
  failed: {
    progress: refused("failed_before"),
    complete: refused("failed_before"),
    fail: repeated,
    abandon: to("abandoned"),
    lease_passed: ignored,
    deadline_passed: ignored,
    ready: ignored,
  },
  lost: {
    progress: to("in_progress"),
    complete: to("verifying"),
    fail: to("failed"),
    abandon: to("abandoned"),
    lease_passed: ignored,
    deadline_passed: to("late"),
    ready: ignored,
  },
  late: {
    progress: refused("deadline_passed"),
    complete: to("verifying"),
    fail: to("failed"),
    abandon: to("abandoned"),
    lease_passed: ignored,
    deadline_passed: ignored,
    ready: ignored,
  },
  unverified: {
    progress: refused("completed_before"),
    complete: repeated,
    fail: to("failed"),
    abandon: to("abandoned"),
    lease_passed: ignored,
    deadline_passed: ignored,
    ready: to("completed"),
  },
  abandoned: {
    progress: refused("abandoned"),
    complete: refused("abandoned"),
    fail: refused("abandoned"),
    abandon: repeated,
    lease_passed: ignored,
    deadline_passed: ignored,
    ready: ignored,
  },
};

/** Who sends a report: whether it is the system that holds the attempt, and whether a newer attempt has replaced the reported attempt. */
export interface Reporter {
  readonly isHolder: boolean;
  /** True if the node has a newer attempt than the reported one. */
  readonly isSuperseded: boolean;
}

/**
 * `kept` means that the report is recorded and shown, and never applied. `foreign` means that the reporter does not hold the attempt, and so may not
 * send this kind of report.
 */
export type ReportEffect = AttemptEffect | { readonly kind: "kept" } | { readonly kind: "foreign" };

/**
 * Decides about a report. Only the holder of an attempt may report about it, but every operator may abandon it. A report about an attempt that a newer
 * one has replaced changes nothing, whatever it says.
 */
export function effectOfReport(state: ExternalState, report: AttemptReport, by: Reporter): ReportEffect {
  if (!by.isHolder && report !== "abandon") return { kind: "foreign" };
  if (by.isSuperseded) return { kind: "kept" };
  return ATTEMPT_TABLE[state][report];
}

/** The states in which an attempt holds its node, so that no other system begins one. */
const HOLDING: ReadonlySet<ExternalState> = new Set(["begun", "in_progress", "verifying"]);
export const holdsNode = (state: ExternalState): boolean => HOLDING.has(state);

/** The states in which an external system must report before its lease runs out. */
const LEASED: ReadonlySet<ExternalState> = new Set(["begun", "in_progress"]);
export const isLeased = (state: ExternalState): boolean => LEASED.has(state);

/** What an operator does about an attempt in each state; null for a state in which an operator need do nothing. */
export const NEXT_ACTION: Readonly<Record<ExternalState, string | null>> = {
  begun: null,
  in_progress: null,
  verifying: "Let what is lacking be reported; get-external-attempt lists it in waiting_for",
  completed: null,
  failed: "Mend what its external system says, and begin a new attempt",
  lost: "Look whether its external system still runs. It may report on, or begin a new attempt",
  late: "Look at its external system. It may still report the completion, or begin a new attempt",
  unverified: "Let what is lacking be reported: the node then comes into service by itself. Or begin a new attempt",
  abandoned: "Begin a new attempt, or remove the node",
};
