/**
 * The values of NVIDIA NICo's label `repair_status`; `missing` stands for a missing label. In Muster the repair status is a part of the request that
 * ends the repair, so the status of an earlier repair attempt never counts (decision R1).
 */
export const REPAIR_STATUSES = ["completed", "failed", "in_progress", "unknown", "missing"] as const;
export type RepairStatus = (typeof REPAIR_STATUSES)[number];

const SPELLINGS: ReadonlyMap<string, RepairStatus> = new Map([
  ["completed", "completed"],
  ["failed", "failed"],
  ["inprogress", "in_progress"],
  ["in_progress", "in_progress"],
  ["in-progress", "in_progress"],
]);
export const repairStatusOf = (label: string | undefined): RepairStatus =>
  label === undefined ? "missing" : (SPELLINGS.get(label.toLowerCase()) ?? "unknown");

/** The facts of a release that decide what becomes of the node's repair marks. */
export interface ReleaseFacts {
  /** True if the released allocation is the repair team's access to the machine; false for any other tenant's allocation. */
  readonly isRepairTenant: boolean;
  /** True if the release names an issue of the machine. */
  readonly namesIssue: boolean;
  /** True if the node has a repair request, claimed or not. */
  readonly isRequested: boolean;
  readonly status: RepairStatus;
  /** The site's setting `auto_repair`. */
  readonly autoRepair: boolean;
  /** True while the machine has an online repair, in which its tenant keeps the machine. */
  readonly isOnlineUnderWay: boolean;
}

/**
 * What the release of an allocation does to the two marks of a full repair: the mark of the issue and the mark of the repair request.
 * `clear_after_checks` keeps the issue's mark until the repair case is closed, because a machine leaves its repair only with a passed validation and
 * a sanitization record (repair 5.1).
 */
export type ReleaseDecision =
  | { readonly refused: "online_repair_under_way" }
  | {
      readonly refused: null;
      readonly issue: "keep" | "set_given" | "set_fallback" | "clear_after_checks";
      readonly request: "keep" | "add" | "remove";
    };

const KEEP = { refused: null, issue: "keep", request: "keep" } as const;

/**
 * NVIDIA NICo's rules for the release of a faulty or repaired machine, with the corrections of decisions R1 and R2. A release by the repair tenant
 * never adds a repair request.
 */
export function decideRelease(facts: ReleaseFacts): ReleaseDecision {
  const { isRepairTenant, namesIssue, isRequested, status, autoRepair, isOnlineUnderWay } = facts;
  if (isOnlineUnderWay) return { refused: "online_repair_under_way" };
  if (!isRepairTenant)
    return namesIssue ? { refused: null, issue: "set_given", request: autoRepair ? "add" : "keep" } : KEEP;
  if (!isRequested) return namesIssue ? { ...KEEP, issue: "set_given" } : KEEP;
  if (namesIssue) return { refused: null, issue: "set_given", request: "remove" };
  return { refused: null, issue: status === "completed" ? "clear_after_checks" : "set_fallback", request: "remove" };
}
