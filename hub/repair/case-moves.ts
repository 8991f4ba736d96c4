import { isOnlineUnderWay, type RepairMode, type RepairState } from "../../shared/repair.ts";

export const REPAIR_MOVES = [
  "report_again",
  "request",
  "withdraw",
  "claim",
  "complete",
  "fail",
  "lapse",
  "hand_over",
  "escalate",
  "refute",
  "become_full",
  "close",
  "abandon",
] as const;
export type RepairMove = (typeof REPAIR_MOVES)[number];
type Moves = Readonly<Record<RepairState, Readonly<Partial<Record<RepairMove, RepairState>>>>>;

const WORK_ENDS = {
  complete: "repaired",
  fail: "failed",
  lapse: "failed",
  hand_over: "escalated",
  escalate: "escalated",
  abandon: "abandoned",
} as const;

/**
 * All moves of a repair case. A repair attempt whose outcome nobody reports ends as `failed`, so an unknown outcome never returns the machine to
 * service. Of all moves of a repair case, only `close` returns the machine to service. The move `become_full` makes an online repair case a full one,
 * when the tenant has given the machine up.
 */
export const CASE_MOVES: Readonly<Record<RepairMode, Moves>> = {
  full: {
    reported: {
      report_again: "reported",
      request: "requested",
      complete: "repaired",
      escalate: "escalated",
      abandon: "abandoned",
    },
    requested: {
      report_again: "requested",
      withdraw: "reported",
      claim: "claimed",
      escalate: "escalated",
      abandon: "abandoned",
    },
    claimed: { ...WORK_ENDS, report_again: "claimed" },
    repaired: {
      report_again: "failed",
      refute: "failed",
      escalate: "escalated",
      close: "closed",
      abandon: "abandoned",
    },
    failed: {
      report_again: "failed",
      request: "requested",
      complete: "repaired",
      escalate: "escalated",
      abandon: "abandoned",
    },
    escalated: { report_again: "escalated", request: "requested", complete: "repaired", abandon: "abandoned" },
    closed: {},
    abandoned: {},
  },
  online: {
    reported: {},
    requested: {
      withdraw: "failed",
      claim: "claimed",
      lapse: "failed",
      escalate: "escalated",
      abandon: "abandoned",
    },
    claimed: WORK_ENDS,
    repaired: { refute: "failed", lapse: "failed", escalate: "escalated", close: "closed", abandon: "abandoned" },
    failed: {
      request: "requested",
      complete: "repaired",
      escalate: "escalated",
      become_full: "reported",
      abandon: "abandoned",
    },
    escalated: { request: "requested", complete: "repaired", become_full: "escalated", abandon: "abandoned" },
    closed: {},
    abandoned: {},
  },
};

/** Returns the state of a repair case after the move, or null if the present state does not allow the move. */
export const afterMove = (mode: RepairMode, from: RepairState, move: RepairMove): RepairState | null =>
  CASE_MOVES[mode][from][move] ?? null;

const allowed = (mode: RepairMode, from: RepairState): string[] => Object.keys(CASE_MOVES[mode][from]);
const VERBS: Readonly<Partial<Record<RepairMove, string>>> = {
  request: "request-repair",
  withdraw: "withdraw-repair-request",
  claim: "claim-repair",
  complete: "report-repair",
  escalate: "escalate-repair",
  refute: "validate-repair",
  close: "close-repair",
};
/** Returns the verbs with which a person can continue the repair case, as the command line names them. */
export const verbsFrom = (mode: RepairMode, from: RepairState): string[] =>
  allowed(mode, from).flatMap((move) => VERBS[move as RepairMove] ?? []);

export const isRequestOpen = (state: RepairState): boolean => state === "requested" || state === "claimed";

/** The templates of the health overrides with which a repair case marks its node. */
export const MARK_TEMPLATES = ["TenantReportedIssue", "RequestRepair", "RequestOnlineRepair", "OutForRepair"] as const;
export type MarkTemplate = (typeof MARK_TEMPLATES)[number];

/**
 * Returns the repair marks that a node has while its repair case is in the given state; null if the case leaves the node's marks as they are. The
 * repair marks of a removed node stay, so that the next node of the same host inherits them.
 */
export function marksOf(mode: RepairMode, state: RepairState): readonly MarkTemplate[] | null {
  if (state === "abandoned") return null;
  if (state === "closed") return [];
  if (state === "escalated") return ["TenantReportedIssue", "OutForRepair"];
  if (isOnlineUnderWay(mode, state)) return ["RequestOnlineRepair"];
  return mode === "full" && isRequestOpen(state) ? ["TenantReportedIssue", "RequestRepair"] : ["TenantReportedIssue"];
}
