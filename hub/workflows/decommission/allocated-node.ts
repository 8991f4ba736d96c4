import { ApiError } from "../../../shared/api/errors.ts";
import type { AllocationId, WorkflowId } from "../../../shared/ids.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";
import { setTurnover } from "../../db/queries/allocations.ts";
import { nodePolicies } from "../../db/queries/node-profiles.ts";
import { wasReinstalled } from "../../db/queries/reinstalls.ts";
import { hadRootBy } from "../../db/queries/tenancies.ts";
import type { AllocationRow, Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { beginEnding } from "../../node/allocation-moves.ts";
import { turnoverMode } from "../../node/turnover-mode.ts";

interface Wanted {
  readonly mode: DecommissionMode;
  readonly reason: string;
  readonly force_release_allocation?: boolean | undefined;
  readonly erase?: string | undefined;
  readonly storage_cleanup?: string | undefined;
  /** The instance that a reinstall gives back to its tenant. */
  readonly allocation_id?: AllocationId;
}

/**
 * Refuses an operation on a node that a tenant uses (lifecycle 5.9). A request for a drain may say that the drain takes the node from its tenant; the
 * node's allocation then becomes `ending`. An operation may begin on a node whose allocation is `ending` already.
 */
export async function mustNotTakeFromTenant(
  tx: Tx,
  node: Node,
  wanted: Wanted,
  {
    allocation,
    actor,
    operation,
  }: { readonly allocation: AllocationRow | null; readonly actor: string; readonly operation: WorkflowId },
): Promise<void> {
  if (wanted.mode === "reinstall") return mustBeForTenant(node, wanted.allocation_id, allocation);
  if (allocation === null) return;
  if (allocation.status === "ending") return mustCleanEnough(tx, node, wanted, allocation);
  // A full decommission ends the node's allocation itself, in its stage `force_release_allocations`.
  if (wanted.mode === "full_decommission" && wanted.force_release_allocation === true) return;
  if (wanted.force_release_allocation === true)
    return beginEnding(tx, allocation, { reason: wanted.reason, forced: true, actor, operation });
  const or =
    wanted.mode === "drain" || wanted.mode === "full_decommission"
      ? `, or ask for the ${wanted.mode} with force_release_allocation`
      : "";
  throw new ApiError(
    "allocation_exists",
    `Node ${node.hostname} is allocated to ${allocation.tenant} (allocation ${allocation.id}), so no ${wanted.mode} can begin. Release the allocation first${or}.`,
    { context: { node_id: node.id, allocation_id: allocation.id } },
  );
}

/**
 * Refuses a reinstall unless the named allocation of the node is active, because a reinstall gives the node back to its tenant, whose account already
 * exists.
 */
function mustBeForTenant(node: Node, id: AllocationId | undefined, allocation: AllocationRow | null): void {
  if (allocation !== null && allocation.id === id && allocation.status === "active") return;
  throw new ApiError(
    "conflict",
    `Node ${node.hostname} has no active allocation ${id ?? ""}, so there is nothing to reinstall for a tenant. Reimage a node without a tenant.`,
    { context: { node_id: node.id } },
  );
}

/** An operation on a node whose allocation is `ending` must remove all traces of the tenant (decision C4). */
async function mustCleanEnough(tx: Tx, node: Node, wanted: Wanted, allocation: AllocationRow): Promise<void> {
  const { mode } = wanted;
  if (mode === "storage_cleanup")
    throw new ApiError(
      "allocation_exists",
      `Allocation ${allocation.id} of node ${node.hostname} to ${allocation.tenant} is ending, and a storage cleanup does not remove the tenant's account. Release the allocation again.`,
      { context: { node_id: node.id, allocation_id: allocation.id } },
    );
  const leavesDisks = mode === "soft_reset" || (mode === "reimage" && wanted.erase !== "secure");
  if (leavesDisks && wasReinstalled(allocation))
    throw new ApiError(
      "conflict",
      `The host of node ${node.hostname} was installed anew for its tenant, so the baseline of its system does not tell what the tenant has left on the data disks, and only a reimage with a secure erase cleans it. Reimage the node with erase: secure.`,
      { context: { node_id: node.id, allocation_id: allocation.id } },
    );
  const leaves = leavesFiles(wanted);
  if (leaves !== null)
    throw new ApiError(
      "conflict",
      `Allocation ${allocation.id} of node ${node.hostname} to ${allocation.tenant} is ending, and ${leaves}, so the next tenant could read them.`,
      { context: { node_id: node.id, allocation_id: allocation.id } },
    );
  if (mode !== "soft_reset") return;
  const grantsRoot = hadRootBy(allocation);
  if (!grantsRoot) return;
  const policy = (await nodePolicies(tx, [node.id])).get(node.id) ?? null;
  if (turnoverMode({ grantsRoot, onboardingMode: node.onboardingMode, policy }) !== "reimage") return;
  throw new ApiError(
    "conflict",
    `The tenant of node ${node.hostname} had root, so only a reimage cleans it. Reimage the node, or set soft_reset_after_root of its profile.`,
    { context: { node_id: node.id, allocation_id: allocation.id } },
  );
}

/**
 * Says how an operation would leave a tenant's files on the host, and what to ask for instead; null for an operation that removes them. The first boot
 * after a reimage mounts the share disks that it finds, and the baseline of the new system then takes their files for its own.
 */
function leavesFiles({ mode, erase, storage_cleanup: scope }: Wanted): string | null {
  if (mode === "reimage" && erase === "none")
    return "a reimage without an erase leaves the tenant's files on the data disks. Ask for erase quick or secure";
  return mode === "soft_reset" && (scope === "none" || scope === "weka")
    ? `a soft reset with storage_cleanup ${scope} leaves the tenant's files on the local disks. Ask for storage_cleanup all or local`
    : null;
}

/** Records the operation as the cleaning of the node's `ending` allocation, in place of a cancelled cleaning. */
export async function adoptEnding(tx: Tx, allocation: AllocationRow | null, id: WorkflowId): Promise<void> {
  if (allocation?.status !== "ending") return;
  await setTurnover(tx, allocation.id, { decommissionId: id, endForced: allocation.endForced });
}
