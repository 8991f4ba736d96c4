/**
 * What NVIDIA NICo's label `repair_status` says, and `missing` without it. In Muster the status is a part of the request that ends the repair, so a
 * status of an earlier attempt never counts (decision R1).
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
  /** True if the one that repairs the machine gives it back; false for any other tenant. */
  readonly isRepairTenant: boolean;
  /** True if the release names an issue of the machine. */
  readonly namesIssue: boolean;
  /** True if the node has a repair request, claimed or not. */
  readonly isRequested: boolean;
  readonly status: RepairStatus;
  /** The site's setting `auto_repair`. */
  readonly autoRepair: boolean;
  /** True while the machine is repaired with its tenant on it. */
  readonly isOnlineUnderWay: boolean;
}

/**
 * What a release does to the two marks of a full repair. `clear_after_checks` keeps the mark until the case is closed, because a machine leaves its
 * repair only with a passed validation and a sanitization record (repair 5.1).
 */
export type ReleaseDecision =
  | { readonly refused: "online_repair_under_way" }
  | {
      readonly refused: null;
      readonly issue: "keep" | "set_given" | "set_fallback" | "clear_after_checks";
      readonly request: "keep" | "add" | "remove";
    };

const KEEP = { refused: null, issue: "keep", request: "keep" } as const;

/** NICo's decisions about a release, with the corrections of decisions R1 and R2. A release by the repair tenant never adds a repair request. */
export function decideRelease(facts: ReleaseFacts): ReleaseDecision {
  const { isRepairTenant, namesIssue, isRequested, status, autoRepair, isOnlineUnderWay } = facts;
  if (isOnlineUnderWay) return { refused: "online_repair_under_way" };
  if (!isRepairTenant)
    return namesIssue ? { refused: null, issue: "set_given", request: autoRepair ? "add" : "keep" } : KEEP;
  if (!isRequested) return namesIssue ? { ...KEEP, issue: "set_given" } : KEEP;
  if (namesIssue) return { refused: null, issue: "set_given", request: "remove" };
  return { refused: null, issue: status === "completed" ? "clear_after_checks" : "set_fallback", request: "remove" };
}
