import type { HealthIssue, RepairOutcome } from "../../shared/repair.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { continueEnding } from "../allocations/end-allocation.ts";
import { lockAllocation } from "../db/queries/allocations.ts";
import { readSite } from "../db/queries/maas-sites.ts";
import type { CaseChange } from "../db/queries/repair-cases.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { moveCase } from "./move-case.ts";
import { requestAutomatically } from "./request-repair.ts";

/** How a repair attempt ended, and who reported its end. */
export interface AttemptEnd {
  readonly outcome: RepairOutcome;
  readonly actor: string;
  readonly message: string;
  /** A new issue of the machine that the repair team found; a new issue also makes a completed repair a failed one. */
  readonly issue: HealthIssue | null;
  /** The text that the node's repair mark shows if the report of the attempt names neither a success nor a new issue. */
  readonly finding: string;
}

const MOVES = {
  completed: { move: "complete", entry: "completed" },
  failed: { move: "fail", entry: "failed" },
  in_progress: { move: "fail", entry: "failed" },
  manual: { move: "hand_over", entry: "handed_over" },
  unknown: { move: "lapse", entry: "lapsed" },
} as const satisfies Readonly<Record<RepairOutcome, object>>;

/**
 * Ends the repair attempt of a locked repair case: its claim, its access to the host, and, if an online repair fails and the tenant agreed to that,
 * the tenant's allocation. A repair attempt counts as a success only with the outcome `completed` and without a new issue.
 */
export async function endAttempt(tx: Tx, row: RepairCase, end: AttemptEnd): Promise<RepairCase> {
  const { outcome, actor, message, issue } = end;
  const isSuccess = outcome === "completed" && issue === null;
  const { move, entry } = outcome === "completed" && !isSuccess ? MOVES.failed : MOVES[outcome];
  const change: CaseChange = {
    ...{ outcome, now: "workedUntil", claimUntil: null, validatedAt: null, validatedBy: null, heldBack: null },
    ...(issue === null ? { finding: isSuccess ? null : end.finding } : { ...issue, finding: null }),
  };
  const details = { outcome, ...(issue === null ? {} : { issue }) };
  const moved = await moveCase(tx, row, move, { entry, actor, message, details }, change);
  await endAccess(tx, row, { actor, reason: `Repair ${row.id}: ${message}` });
  const gives = moved.mode === "online" && moved.state === "failed" && moved.releaseOnFailure;
  return gives ? giveUpMachine(tx, moved, actor) : moved;
}

/** Ends the allocation by which a repair claim gave access to the host, so that the host is cleaned of what the repair team left. */
export async function endAccess(
  tx: Tx,
  row: RepairCase,
  by: { readonly actor: string; readonly reason: string },
): Promise<void> {
  if (row.accessAllocationId === null) return;
  const allocation = await lockAllocation(tx, row.accessAllocationId);
  if (allocation === null || allocation.status === "ended" || allocation.decommissionId !== null) return;
  const reason = withoutCredentials(by.reason).slice(0, 256);
  await continueEnding(tx, allocation, { ...by, reason, forced: false });
}

/** Releases the tenant's allocation after a failed online repair, as the tenant has agreed, and goes on with a full repair. */
async function giveUpMachine(tx: Tx, row: RepairCase, actor: string): Promise<RepairCase> {
  const allocation = row.allocationId === null ? null : await lockAllocation(tx, row.allocationId);
  if (allocation === null || allocation.status === "ended") return row;
  const reason = `Online repair ${row.id} failed, and the tenant agreed to a full repair`;
  await continueEnding(tx, allocation, { actor, reason, forced: false });
  return becomeFull(tx, row, { actor, message: reason, issue: null, mayRequest: true });
}

export interface Becoming {
  readonly actor: string;
  readonly message: string;
  readonly issue: HealthIssue | null;
  /** True if the hub may request the full repair automatically, as the site's setting `auto_repair` says. */
  readonly mayRequest: boolean;
}

/** Makes an online repair case that is not under way a full one, because the tenant has given the machine up. */
export async function becomeFull(
  tx: Tx,
  row: RepairCase,
  { actor, message, issue, mayRequest }: Becoming,
): Promise<RepairCase> {
  const change: CaseChange = { mode: "full", ...(issue === null ? {} : { ...issue, finding: null }) };
  const details = issue === null ? {} : { issue };
  const full = await moveCase(tx, row, "become_full", { entry: "became_full", actor, message, details }, change);
  return mayRequest && full.state === "reported" && (await isAutomatic(tx, full))
    ? requestAutomatically(tx, full)
    : full;
}

/** Returns the setting `auto_repair` of the machine's site. A node without a site has no automatic repair. */
export async function isAutomatic(tx: Tx, { siteId }: Pick<RepairCase, "siteId">): Promise<boolean> {
  return siteId !== null && ((await readSite(tx, siteId))?.autoRepair ?? false);
}
