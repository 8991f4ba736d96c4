import type { z } from "zod";
import type { Repair, RepairDetail, RepairMachine } from "../../../shared/api/repairs.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { AllocationRow, RepairCase, RepairEventRow } from "../../db/schema/index.ts";
import { verbsFrom } from "../../repair/case-moves.ts";
import type { FailedCheck } from "../../repair/out-of-repair.ts";

export const toRepair = (row: RepairCase): z.input<typeof Repair> => ({
  id: row.id,
  node_id: row.nodeId,
  hostname: row.hostname,
  site_id: row.siteId,
  mode: row.mode,
  state: row.state,
  state_since: row.stateSince.toISOString(),
  issue: { category: row.category, summary: row.summary, details: row.details },
  finding: row.finding,
  allocation_id: row.allocationId,
  tenant: row.tenant,
  opened_by: row.openedBy,
  opened_at: row.openedAt.toISOString(),
  attempt: row.attempt,
  claimed_by: row.claimedBy,
  repair_tenant: row.repairTenant,
  claim_until: isoOrNull(row.claimUntil),
  access_allocation_id: row.accessAllocationId,
  outcome: row.outcome,
  validated_by: row.validatedBy,
  validated_at: isoOrNull(row.validatedAt),
  held_back: row.heldBack,
  release_on_failure: row.releaseOnFailure,
  ended_at: isoOrNull(row.endedAt),
  verbs: verbsFrom(row.mode, row.state),
});

export interface RepairFacts {
  readonly machine: RepairMachine | null;
  readonly events: readonly RepairEventRow[];
  readonly checks: readonly FailedCheck[];
  /**
   * The status of the allocation whose tenant reported the host's fault, and the verdict of the sanitization record of the cleaning after this
   * allocation.
   */
  readonly reporter: { readonly status: AllocationRow["status"]; readonly verdict: string | null } | null;
}

/**
 * A repair case's field `sanitized` is `unknown` while the cleaning after the tenant is under way, and `no` if the cleaning has ended without a clean
 * record.
 */
function sanitizedOf(reporter: RepairFacts["reporter"]): z.input<typeof RepairDetail>["sanitized"] {
  if (reporter === null) return "unknown";
  if (reporter.verdict !== null) return reporter.verdict === "clean" ? "yes" : "no";
  return reporter.status === "ending" ? "unknown" : "no";
}

export const toRepairDetail = (row: RepairCase, facts: RepairFacts): z.input<typeof RepairDetail> => ({
  ...toRepair(row),
  machine: facts.machine,
  sanitized: sanitizedOf(facts.reporter),
  failed_checks: facts.checks.map((one) => ({ ...one })),
  timeline: facts.events.map(({ occurredAt, type, attempt, actor, message, details }) => ({
    at: occurredAt.toISOString(),
    entry: type,
    attempt,
    actor,
    message,
    details: { ...details },
  })),
});
