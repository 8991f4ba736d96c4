import type { ExternalState } from "../../../shared/external-attempt.ts";

/** The inputs of a provisioning attempt: a report by an external system or a person, a time limit that has passed, and the node's readiness. */
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
/** The inputs of a provisioning attempt that come by a request; the hub itself finds the other inputs, such as a passed deadline. */
export type AttemptReport = Extract<AttemptInput, "progress" | "complete" | "fail" | "abandon">;

/**
 * The effect of an input, such as a report or a passed deadline, on a provisioning attempt. The effect `repeated` means that the provisioning attempt
 * has had the same input before, so a repeated request is no error. The effect `ignored` means that the input says nothing about a provisioning
 * attempt in its present state. Only an input that comes by a request can have the effect `refused`, and `WHY_REFUSED` tells the reason.
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
 * The whole state machine of an attempt. Two rules explain its rows. Until a newer provisioning attempt begins, a late report of completion counts:
 * an external system that was silent for too long may still have provisioned the host, and nothing may stay stuck because a message came late. No
 * input of an external system makes a node ready, because only the conditions of the node do.
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

/**
 * Facts about the sender of a report about a provisioning attempt: whether the sender holds the attempt, and whether a newer attempt has replaced it.
 */
export interface Reporter {
  readonly isHolder: boolean;
  /** True if the node has a newer provisioning attempt than the one that the report is about. */
  readonly isSuperseded: boolean;
}

/**
 * The effect `kept` means that the hub records and shows the report about a provisioning attempt, and never applies it. The effect `foreign` means
 * that the sender of the report does not hold the provisioning attempt, and so may not send this kind of report.
 */
export type ReportEffect = AttemptEffect | { readonly kind: "kept" } | { readonly kind: "foreign" };

/**
 * Decides about a report. Only the external system that holds a provisioning attempt may report about the attempt, but every operator may abandon it.
 * A report about a provisioning attempt changes nothing if a newer attempt has replaced this attempt, whatever the report says.
 */
export function effectOfReport(state: ExternalState, report: AttemptReport, by: Reporter): ReportEffect {
  if (!by.isHolder && report !== "abandon") return { kind: "foreign" };
  if (by.isSuperseded) return { kind: "kept" };
  return ATTEMPT_TABLE[state][report];
}

/** The states of a provisioning attempt in which the attempt holds its node, so that no other external system can begin one. */
const HOLDING: ReadonlySet<ExternalState> = new Set(["begun", "in_progress", "verifying"]);
export const holdsNode = (state: ExternalState): boolean => HOLDING.has(state);

/** The states of a provisioning attempt in which the external system must report before the attempt's lease runs out. */
const LEASED: ReadonlySet<ExternalState> = new Set(["begun", "in_progress"]);
export const isLeased = (state: ExternalState): boolean => LEASED.has(state);

/** What an operator does about a provisioning attempt in each state; null for a state in which an operator need do nothing. */
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
