import type { AllocationStatus } from "../../shared/allocation-status.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { type AllocationChange, setAllocationStatus } from "../db/queries/allocations.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { cancelTasksOf } from "../db/queries/tasks.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/** All allowed changes of an allocation's status (architecture 14.1). */
export const ALLOCATION_MOVES = {
  granting: ["active", "failed", "ending"],
  active: ["ending"],
  failed: ["granting", "ending"],
  ending: ["ended"],
  ended: [],
} as const satisfies Readonly<Record<AllocationStatus, readonly AllocationStatus[]>>;

type Moves = typeof ALLOCATION_MOVES;
/**
 * A change of an allocation's status that `ALLOCATION_MOVES` allows. Code that changes an allocation's status in a way that `ALLOCATION_MOVES` does
 * not allow does not compile.
 */
export type AllocationMove = {
  [F in AllocationStatus]: { readonly from: F; readonly to: Moves[F][number] };
}[AllocationStatus];

const EVENTS = {
  granting: "node.allocation.started",
  active: "node.allocation.active",
  failed: "node.allocation.failed",
  ending: "node.allocation.ending",
  ended: "node.allocation.ended",
} as const satisfies Readonly<Record<AllocationStatus, string>>;

/**
 * Records an allocation's new status in the node's history, and as an event for clients of the hub. Neither the node's history nor the event about an
 * allocation contains the tenant's SSH keys. `operation` is the decommission that changed the allocation's status; by default it is the operation
 * that cleans the node after the tenant.
 */
export async function tellAllocation(
  tx: Tx,
  row: AllocationRow,
  owner: string,
  message: string,
  operation: WorkflowId | null = row.decommissionId,
): Promise<void> {
  const { id, nodeId, tenant, status } = row;
  const by = operation === null ? {} : { decommission_id: operation };
  await recordNodeEvent(tx, {
    nodeId,
    type: "allocation",
    owner,
    message: `Allocation ${id} to ${tenant} is ${status}: ${message}`,
    details: { allocation_id: id, status, ...by },
  });
  await recordDomainEvent(tx, {
    type: EVENTS[status],
    subject: `allocations/${id}`,
    data: {
      ...about(row, message),
      ...(row.errorCode === null ? {} : { error_code: row.errorCode }),
      ...by,
    },
  });
}

const about = ({ id, nodeId, hostname, siteId, tenant }: AllocationRow, message: string) => ({
  allocation_id: id,
  node_id: nodeId,
  hostname,
  site_id: siteId,
  tenant,
  message,
});

/** Records a change of an allocation that does not change its status. */
export async function tellChange(tx: Tx, row: AllocationRow, owner: string, message: string): Promise<void> {
  const details = { allocation_id: row.id, status: row.status };
  const text = `Allocation ${row.id} to ${row.tenant}: ${message}`;
  await recordNodeEvent(tx, { nodeId: row.nodeId, type: "allocation", owner, message: text, details });
  const data = about(row, message);
  await recordDomainEvent(tx, { type: "node.allocation.changed", subject: `allocations/${row.id}`, data });
}

/** What the node's history and the event about an allocation's new status contain besides the status. */
interface Told {
  readonly owner: string;
  readonly message: string;
  /** The decommission that changes the allocation's status, if it is not the operation that cleans the node after the tenant. */
  readonly operation?: WorkflowId | undefined;
}

/**
 * `moveAllocation` returns null if the allocation's stored status is no longer `move.from`. The parameter `owner` is the person or the part of Muster
 * that makes the change.
 */
export async function moveAllocation(
  tx: Tx,
  row: Pick<AllocationRow, "id">,
  move: AllocationMove,
  { owner, message, operation, ...change }: AllocationChange & Told,
): Promise<AllocationRow | null> {
  const moved = await setAllocationStatus(tx, row.id, move, change);
  if (moved !== null) await tellAllocation(tx, moved, owner, message, operation ?? moved.decommissionId);
  return moved;
}

/**
 * The person or part of Muster that ends an allocation, and the reason. `forced` is true if a person released the node while an operation held it,
 * and if a drain takes the node from the tenant.
 */
export interface Ending {
  readonly reason: string;
  readonly forced: boolean;
  readonly actor: string;
  /** The decommission that takes the node from the tenant and so ends the allocation; undefined if no decommission does so. */
  readonly operation?: WorkflowId;
}

/**
 * Makes an open allocation `ending`, and cancels the task that makes the tenant's account. The node stays allocated until it is cleaned after the
 * tenant, or until its host is gone. An allocation that is `ending` already keeps the reason with which its end began.
 */
export async function beginEnding(tx: Tx, row: AllocationRow, by: Ending): Promise<void> {
  const { reason, forced, actor, operation } = by;
  const { status } = row;
  if (status === "ending" || status === "ended") return;
  // A node has only one open allocation, so each task that makes or changes a tenant's account on the node belongs to this allocation, even a task of
  // a reinstall.
  await cancelTasksOf(tx, row.nodeId, "allocation.grant_user");
  const change = { owner: actor, message: reason, endReason: reason, endForced: forced, operation };
  await moveAllocation(tx, row, { from: status, to: "ending" }, change);
}
