import { ApiError } from "../../shared/api/errors.ts";
import { NOT_UNDONE } from "../../shared/failures.ts";
import { HEALTH_TEMPLATES } from "../../shared/health-report.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { isOnlineUnderWay } from "../../shared/repair.ts";
import { isFailed } from "../../shared/workflow-status.ts";
import { readAllocation, setTurnover } from "../db/queries/allocations.ts";
import type { AuditSource } from "../db/queries/audit-logs.ts";
import { listHealthOverrides } from "../db/queries/node-health-overrides.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { openRepairsOf } from "../db/queries/repair-cases.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import { readWorkflow } from "../db/queries/workflows.ts";
import type { AllocationRow, Workflow as WorkflowRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { beginEnding, type Ending } from "../node/allocation-moves.ts";
import { overridesThat } from "../node/health-aggregate.ts";
import { heldError } from "../workflows/decommission/start-decommission.ts";
import { startTurnover } from "../workflows/decommission/start-turnover.ts";
import { applyVerb } from "../workflows/engine/apply-verb.ts";
import { engineFacts, type Workflow } from "../workflows/engine/workflow.ts";
import { lockBoth } from "./lock-both.ts";

export interface EndRequest extends Ending, AuditSource {}

/**
 * What a release without force does with an unfinished reinstall of the instance, so that the hub can, if possible, clean the node without a person.
 * A running reinstall continues until the host has a system that can be cleaned. A failed reinstall is resumed if only the tenant's account is
 * missing, and is cancelled otherwise. A reinstall that a person has stopped, or that could not be undone, waits for a person.
 */
function verbFor(reinstall: WorkflowRow | null): "resume" | "cancel" | null {
  if (reinstall === null || !isFailed(reinstall.status)) return null;
  const evidence = Object(reinstall.evidence) as object;
  if (engineFacts(reinstall.state).frozen === true || NOT_UNDONE in evidence) return null;
  return reinstall.stage === "restore_tenant" || reinstall.stage === "enable_node" ? "resume" : "cancel";
}

/**
 * Ends an allocation at an operator's request (architecture 14.1). While an operation holds the node, `releaseAllocation` refuses, or cancels the
 * operation if the request is forced. A reinstall of the instance does not prevent the release (`verbFor`). When an allocation ends, its node is
 * cleaned for the next tenant (the turnover); not even a forced release cancels this cleaning. If `releaseAllocation` refuses the request, it throws
 * ApiError and writes nothing.
 */
export async function releaseAllocation(
  tx: Tx,
  kinds: readonly Workflow[],
  id: AllocationId,
  request: EndRequest,
): Promise<{ readonly prior: AllocationRow; readonly now: AllocationRow }> {
  const { allocation: prior } = await lockBoth(tx, id);
  const holder = await operationOfNode(tx, prior.nodeId);
  if (prior.status === "ended")
    throw new ApiError("conflict", `Allocation ${id} has ended already.`, { context: { allocation_id: id } });
  if (holder !== null && holder === prior.decommissionId)
    throw new ApiError(
      "operation_exists",
      `Allocation ${id} is ending: decommission ${holder} clears node ${prior.hostname}. Wait for it, or recover it.`,
      { context: { allocation_id: id, decommission_id: holder } },
    );
  const node = { id: prior.nodeId, hostname: prior.hostname };
  const held = holder === null ? null : await readWorkflow(tx, holder);
  if (held !== null && held.kind !== "reinstall" && !request.forced)
    throw heldError(node, held.id, "its allocation cannot be released");
  if (!request.forced) await mustBeDeletable(tx, prior);
  const verb = request.forced ? "cancel" : verbFor(held);
  if (held !== null && verb !== null) await applyVerb(tx, kinds, { ...request, workflowId: held.id, verb });
  return { prior, now: await continueEnding(tx, prior, request) };
}

/** A request that takes the system of an allocation away from the tenant, such as a release or a reinstall. */
interface Taking {
  readonly cannot: string;
  /** The end of the message of a refusal: what the caller could request instead, for example a release by force. */
  readonly or: string;
  /** True if the caller itself repairs the machine: a repair of the machine then does not prevent the request. */
  readonly isByRepairer: boolean;
}
const RELEASE: Taking = { cannot: "cannot be released", or: ", or release by force", isByRepairer: false };
const OF_ONLINE_REPAIR = HEALTH_TEMPLATES.RequestOnlineRepair.source;

/** While a host is repaired with its tenant on it, the allocation ends only by force, and not at its planned end. */
export async function mustBeDeletable(
  tx: Tx,
  { id, nodeId, hostname }: AllocationRow,
  { cannot, or, isByRepairer }: Taking = RELEASE,
): Promise<void> {
  const repair = (await openRepairsOf(tx, [nodeId])).get(nodeId);
  if (!isByRepairer && repair !== undefined && isOnlineUnderWay(repair.mode, repair.state))
    throw new ApiError(
      "conflict",
      `Allocation ${id} ${cannot}: node ${hostname} is repaired with its tenant on it (repair ${repair.id}, ${repair.state}). End that repair first, with report-repair or withdraw-repair-request${or}.`,
      { context: { allocation_id: id, node_id: nodeId, repair_id: repair.id } },
    );
  const guards = overridesThat("PreventInstanceDeletion", await listHealthOverrides(tx, [nodeId])).filter(
    ({ source }) => !isByRepairer || source !== OF_ONLINE_REPAIR,
  );
  if (guards.length === 0) return;
  const sources = guards.map(({ source }) => source).join(", ");
  throw new ApiError(
    "conflict",
    `Allocation ${id} ${cannot}: a health override of node ${hostname} prevents it (${sources}). Remove the override with remove-node-health-override when its cause is gone${or}.`,
    { context: { allocation_id: id, node_id: nodeId } },
  );
}

/**
 * Makes the allocation `ending`, and begins to clean its node for the next tenant if the node is in service and free of operations. If an operation
 * holds the node, or the node is out of service, the hub's periodic check of allocations begins the cleaning later. The caller of `continueEnding`
 * has locked the allocation and its node.
 */
export async function continueEnding(tx: Tx, allocation: AllocationRow, by: Ending): Promise<AllocationRow> {
  await beginEnding(tx, allocation, by);
  const node = await lockNode(tx, allocation.nodeId);
  const isFree = (await operationOfNode(tx, allocation.nodeId)) === null;
  if (isFree && (node?.status === "active" || node?.status === "offline" || node?.status === "quarantined")) {
    const forced = allocation.endForced || by.forced;
    const ending = { reason: allocation.endReason ?? by.reason, forced, actor: by.actor };
    const decommissionId = await startTurnover(tx, node, allocation, ending);
    await setTurnover(tx, allocation.id, { decommissionId, endForced: forced });
  }
  return (await readAllocation(tx, allocation.id)) ?? allocation;
}
