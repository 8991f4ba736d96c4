import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { keysNow } from "../db/queries/allocation-keys.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { moveAllocation } from "../node/allocation-moves.ts";
import { heldError } from "../workflows/decommission/start-decommission.ts";
import { queueGrant } from "./create-allocation.ts";
import { lockBoth } from "./lock-both.ts";

/** Queues another task that makes the tenant's account, for an allocation that is `failed` (architecture 14.1). */
export async function grantAgain(
  tx: Tx,
  id: AllocationId,
  { actor, reason }: { readonly actor: string; readonly reason: string },
): Promise<{ readonly prior: AllocationRow; readonly now: AllocationRow }> {
  const { allocation: prior, node } = await lockBoth(tx, id);
  const refuse = (why: string) =>
    new ApiError("conflict", why, { context: { allocation_id: id, node_id: prior.nodeId } });
  if (prior.status !== "failed")
    throw refuse(`Allocation ${id} is ${prior.status}, and only a failed allocation is granted again.`);
  const holder = await operationOfNode(tx, prior.nodeId);
  if (holder !== null)
    throw heldError({ id: prior.nodeId, hostname: prior.hostname }, holder, "its allocation cannot be granted");
  if (node === null || (node.status !== "active" && node.status !== "offline"))
    throw refuse(
      `Node ${prior.hostname} is ${node?.status ?? "gone"}, so the account cannot be made. Return the node to service, or release the allocation.`,
    );
  const sshKeys = await keysNow(tx, prior);
  const task = await queueGrant(tx, { ...prior, sshKeys });
  const change = { grantTaskId: task.id, errorCode: null, errorMessage: null, sshKeys, keysDue: false };
  const message = `The agent makes the account again: ${reason}`;
  const now = await moveAllocation(tx, prior, { from: "failed", to: "granting" }, { owner: actor, message, ...change });
  return { prior, now: now ?? prior };
}
