import { ApiError } from "../../shared/api/errors.ts";
import type { OnlineRepairCreate, RepairCreate } from "../../shared/api/repairs.ts";
import { lockBoth } from "../allocations/lock-both.ts";
import { readAllocation } from "../db/queries/allocations.ts";
import { lockOpenCase } from "../db/queries/repair-cases.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { heldError, mustLockNode } from "../workflows/decommission/start-decommission.ts";
import { evidenceOfIssue } from "./loop-guards.ts";
import { noteOnCase, openCase } from "./move-case.ts";
import { mustBeFree } from "./must-be-free.ts";
import { underWay } from "./release-for-repair.ts";
import { loopError, loopHold, requestByPerson } from "./request-repair.ts";

/**
 * Opens a full repair for a person who knows of a fault without a tenant's report. A node with a tenant can have a full repair case that is not
 * requested yet; the tenant then keeps the node until the release of the allocation.
 */
export async function openByOperator(tx: Tx, body: RepairCreate, actor: string): Promise<RepairCase> {
  const { node_id: nodeId, machine_health_issue: issue, request, reason } = body;
  const node = await mustLockNode(tx, nodeId);
  if (node.status === "deleted")
    throw new ApiError("conflict", `Node ${node.hostname} is deleted, so it has no repair.`, {
      context: { node_id: node.id },
    });
  const open = await lockOpenCase(tx, nodeId);
  if (open !== null) throw underWay(open, node);
  if (request) await mustBeFree(tx, { nodeId, hostname: node.hostname, accessAllocationId: null });
  const row = await openCase(tx, { node, mode: "full", issue, actor, allocation: null, details: { reason } });
  return request ? requestByPerson(tx, row, { actor, reason, evidence: undefined }) : row;
}

/**
 * Opens an online repair: the tenant keeps the machine, has acknowledged what that may cost, and cannot release it until the repair ends. Throws
 * `conflict` while a full repair of the machine is open (decision R2), and `operation_exists` while an operation such as a reinstall holds the node.
 */
export async function openOnlineRepair(tx: Tx, body: OnlineRepairCreate, actor: string): Promise<RepairCase> {
  const { allocation, node } = await lockBoth(tx, body.allocation_id);
  if (node === null || allocation.status !== "active") throw notActive(allocation);
  const open = await lockOpenCase(tx, node.id);
  if (open !== null) throw underWay(open, allocation);
  const holder = await operationOfNode(tx, node.id);
  if (holder !== null) throw heldError(node, holder, "it takes no online repair");
  const { machine_health_issue: issue, acknowledgements, release_on_failure: releaseOnFailure, reason } = body;
  const evidence = evidenceOfIssue(issue);
  const held = await loopHold(tx, { nodeId: node.id, siteId: node.siteId }, evidence);
  if (held.hold !== null) throw loopError(allocation, held.hold, held);
  const details = { acknowledgements, release_on_failure: releaseOnFailure, reason };
  const row = await openCase(tx, { node, mode: "online", issue, actor, allocation, releaseOnFailure, details });
  return noteOnCase(tx, row, { entry: "requested", actor, message: reason }, { evidence: [evidence] });
}

/** An online repair is requested again only while its tenant still has the machine. */
export async function mustHaveTenant(tx: Tx, { allocationId }: RepairCase): Promise<void> {
  if (allocationId === null) return;
  const allocation = await readAllocation(tx, allocationId);
  if (allocation !== null && allocation.status !== "active") throw notActive(allocation);
}

const notActive = ({ id, hostname, status }: { id: string; hostname: string; status: string }): ApiError =>
  new ApiError(
    "conflict",
    `Allocation ${id} of node ${hostname} is ${status}, and only an active tenant can have an online repair. Release the allocation with machine_health_issue for a full repair.`,
    { context: { allocation_id: id } },
  );
