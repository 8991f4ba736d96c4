import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { type HealthIssue, isOnlineUnderWay, type RepairOutcome } from "../../shared/repair.ts";
import { type EndRequest, releaseAllocation } from "../allocations/end-allocation.ts";
import { lockBoth } from "../allocations/lock-both.ts";
import { lockOpenCase } from "../db/queries/repair-cases.ts";
import type { AllocationRow, Node, RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import type { Workflow } from "../workflows/engine/workflow.ts";
import { isRequestOpen, verbsFrom } from "./case-moves.ts";
import { becomeFull, endAttempt, isAutomatic } from "./end-attempt.ts";
import { contextOf, moveCase, openCase } from "./move-case.ts";
import { decideRelease, type ReleaseDecision, type RepairStatus, repairStatusOf } from "./release-decision.ts";
import { requestAutomatically } from "./request-repair.ts";

/** What a request for a release says about the machine, in the terms of NVIDIA NICo. */
export interface SaidAtRelease {
  readonly issue: HealthIssue | null;
  readonly isRepairTenant: boolean | undefined;
  readonly repairStatus: string | undefined;
}
export interface Released {
  readonly prior: AllocationRow;
  readonly now: AllocationRow;
  readonly repair: RepairCase | null;
}

/**
 * Ends an allocation at an operator's request, and changes the machine's repair case as NVIDIA NICo's table says (repair 1). The release of the
 * machine and the change of its repair marks are one transaction, so no faulty machine returns to the pool without its mark. If `releaseForRepair`
 * refuses the request, it throws ApiError and writes nothing.
 */
export async function releaseForRepair(
  tx: Tx,
  kinds: readonly Workflow[],
  id: AllocationId,
  { said, ...request }: EndRequest & { readonly said: SaidAtRelease },
): Promise<Released> {
  const { allocation, node } = await lockBoth(tx, id);
  const open = await lockOpenCase(tx, allocation.nodeId);
  const isRepairTenant = open?.accessAllocationId === id;
  mustSayTruth(allocation, said, isRepairTenant);
  const status = repairStatusOf(said.repairStatus);
  const decision = decideRelease({
    isRepairTenant,
    namesIssue: said.issue !== null,
    isRequested: open !== null && isRequestOpen(open.state),
    status,
    autoRepair: await isAutomatic(tx, allocation),
    isOnlineUnderWay: open !== null && isOnlineUnderWay(open.mode, open.state),
  });
  if (decision.refused !== null && open !== null) throw underWay(open, allocation);
  const { prior, now } = await releaseAllocation(tx, kinds, id, request);
  const about = { allocation, node, open, said, actor: request.actor, reason: request.reason };
  const repair = isRepairTenant
    ? await afterRepair(tx, decision, { ...about, status })
    : await afterTenant(tx, decision, about);
  return { prior, now, repair };
}

function mustSayTruth(allocation: AllocationRow, said: SaidAtRelease, isRepairTenant: boolean): void {
  if (isRepairTenant || (said.isRepairTenant !== true && said.repairStatus === undefined)) return;
  throw new ApiError(
    "conflict",
    `Allocation ${allocation.id} of node ${allocation.hostname} is not the access of a claimed repair, so its release reports no repair. Leave is_repair_tenant and repair_status out, or report the repair with report-repair.`,
    { context: { allocation_id: allocation.id } },
  );
}

export const underWay = (open: RepairCase, { hostname }: { readonly hostname: string }): ApiError =>
  new ApiError(
    "conflict",
    `Node ${hostname} has an open ${open.mode} repair already (repair ${open.id}, ${open.state}), and one at a time is possible. Continue it first: ${verbsFrom(open.mode, open.state).join(", ")}.`,
    contextOf(open),
  );

interface About {
  readonly allocation: AllocationRow;
  readonly node: Node | null;
  readonly open: RepairCase | null;
  readonly said: SaidAtRelease;
  readonly actor: string;
  readonly reason: string;
}

/** Changes the repair case after a release by a tenant who did not get the machine for its repair. */
async function afterTenant(
  tx: Tx,
  decision: ReleaseDecision,
  { allocation, node, open, said: { issue }, actor, reason }: About,
): Promise<RepairCase | null> {
  const mayRequest = decision.refused === null && decision.request === "add";
  if (open?.mode === "online")
    return becomeFull(tx, open, {
      actor,
      message: `The tenant has given the machine up: ${reason}`,
      issue,
      mayRequest,
    });
  if (issue === null || node === null) return open;
  const by = { actor, message: issue.summary };
  const tenant = { allocationId: allocation.id, tenant: allocation.tenant };
  const reported =
    open === null
      ? await openCase(tx, { node, mode: "full", issue, actor, allocation, details: { reason } })
      : await moveCase(
          tx,
          open,
          "report_again",
          { entry: "reported_again", ...by, details: { issue } },
          {
            ...issue,
            ...tenant,
            finding: null,
          },
        );
  const waits = reported.state === "reported" || reported.state === "failed";
  return mayRequest && waits ? requestAutomatically(tx, reported) : reported;
}

const OUTCOMES = {
  completed: "completed",
  failed: "failed",
  in_progress: "in_progress",
  unknown: "unknown",
  missing: "unknown",
} as const satisfies Readonly<Record<RepairStatus, RepairOutcome>>;

/**
 * Changes the repair case after the release of the machine access that a repair claim gave; the release ends the repair attempt if the attempt is
 * still open.
 */
async function afterRepair(
  tx: Tx,
  decision: ReleaseDecision,
  { open, said, status, actor, reason }: About & { readonly status: RepairStatus },
): Promise<RepairCase | null> {
  if (open === null || decision.refused !== null || decision.issue === "keep") return open;
  const { issue } = said;
  if (open.state === "claimed") {
    const finding = incomplete(said.repairStatus);
    return endAttempt(tx, open, { outcome: OUTCOMES[status], actor, message: reason, issue, finding });
  }
  if (issue === null) return open;
  const told = { entry: "reported_again", actor, message: issue.summary, details: { issue } } as const;
  return moveCase(tx, open, "report_again", told, { ...issue, finding: null });
}

/** NVIDIA NICo's message about a repair that ended without a reported success. */
export const incomplete = (label: string | undefined): string =>
  `RepairSystem processing incomplete: Machine released by repair tenant but repair status is: ${(label ?? "Unknown").slice(0, 100)}`;
