import { randomUUID } from "node:crypto";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId, TaskId } from "../../shared/ids.ts";
import { validateClean } from "../../shared/tasks/validate-clean.ts";
import { hasUnknownPast } from "../db/queries/node-adoptions.ts";
import {
  lockBaselineResults,
  lockFailedBaselines,
  lockNodesWithoutBaseline,
  readTenancy,
  refuseBaseline,
  requestBaselineRow,
  storeBaseline,
} from "../db/queries/node-baselines.ts";
import { enqueueTask } from "../db/queries/tasks.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/** The largest number of baselines (snapshots of clean hosts) that one transaction handles, because a snapshot may have 320 KiB. */
export const AT_ONCE = 20;
/** The pause in seconds after the failure of a task that takes a baseline, before the hub queues the next task for the baseline. */
const AGAIN_AFTER_SECONDS = 3_600;
/** The deadline in seconds of a task that takes a baseline; after the deadline the hub queues the next task for the baseline. */
const DEADLINE_SECONDS = 86_400;
const BY_HUB = { requestedBy: "hub", reason: "the generation has no complete baseline" } as const;

type Generation = Pick<Node, "id" | "generation">;

/**
 * Queues the agent's task that takes the baseline, a snapshot of the host, for the node's present generation. The caller of `orderBaseline` knows
 * that no tenant has used the operating system that now runs on the host.
 */
export async function orderBaseline(
  tx: Tx,
  { id: nodeId, generation }: Generation,
  request: { readonly requestedBy: string; readonly reason: string },
): Promise<TaskId> {
  const { task } = await enqueueTask(tx, {
    nodeId,
    type: "node.validate_clean",
    input: { allocation: null, plan: false },
    idempotencyKey: `baseline/${generation}/${randomUUID()}`,
    deadlineSeconds: DEADLINE_SECONDS,
  });
  await requestBaselineRow(tx, { nodeId, generation, taskId: task.id, ...request });
  return task.id;
}

/**
 * Orders a node's missing baseline (a snapshot of its clean host) at once: when the node comes into service, or when a tenancy ends with a new
 * installation of the host. Without `orderFirstBaseline`, the baseline would wait for the next periodic search for nodes without a baseline.
 */
export async function orderFirstBaseline(tx: Tx, id: NodeId): Promise<void> {
  for (const node of await lockNodesWithoutBaseline(tx, 1, id)) await orderBaseline(tx, node, BY_HUB);
}

/**
 * One turn of the periodic work on baselines: orders missing baselines, orders failed ones again after a pause, and stores the snapshots that agents
 * have sent.
 */
export async function sweepBaselines(
  tx: Tx,
  againAfterSeconds = AGAIN_AFTER_SECONDS,
): Promise<{ ordered: number; taken: number; refused: number }> {
  const due = [
    ...(await lockNodesWithoutBaseline(tx, AT_ONCE)),
    ...(await lockFailedBaselines(tx, againAfterSeconds, AT_ONCE)),
  ];
  for (const node of due) await orderBaseline(tx, node, BY_HUB);
  return { ordered: due.length, ...(await storeBaselines(tx)) };
}

/**
 * Stores the snapshots in the results of finished tasks as the baselines of their nodes. If `only` is set, `storeBaselines` handles only the node
 * `only`.
 */
export async function storeBaselines(tx: Tx, only: NodeId | null = null): Promise<{ taken: number; refused: number }> {
  let [taken, refused] = [0, 0];
  for (const { result, allocated, ...row } of await lockBaselineResults(tx, AT_ONCE, only)) {
    const parsed = validateClean.result.safeParse(result);
    if (parsed.success && !allocated) {
      await storeBaseline(tx, row, { bootId: parsed.data.boot_id, snapshot: parsed.data.snapshot });
      taken += 1;
      continue;
    }
    const problem = allocated
      ? "A tenant had the node while the baseline was taken, so the snapshot may contain the tenant's traces."
      : "The stored result of the task is not a snapshot that this hub can read.";
    await refuseBaseline(tx, row, problem);
    refused += 1;
  }
  return { taken, refused };
}

/**
 * Orders a new baseline of a node (a snapshot of its clean host) because an operator asked for one. A host that has a tenant, or that was not cleaned
 * after a tenant, gets no new baseline. If a baseline contained traces of a tenant, these traces would count as clean from then on.
 */
export async function requestNewBaseline(tx: Tx, node: Node, requestedBy: string, reason: string): Promise<void> {
  const refuse = (why: string): ApiError =>
    new ApiError("conflict", `No baseline of node ${node.hostname} can be taken: ${why}`, {
      context: { node_id: node.id, node_status: node.status },
    });
  if (node.status !== "active" && node.status !== "quarantined")
    throw refuse(`the node is ${node.status}. Bring the node into service first.`);
  if (await hasUnknownPast(tx, node.id))
    throw refuse(
      "its host ran before it was adopted, and nobody knows who used it, so traces of a tenant may be left. Reimage the node.",
    );
  const tenancy = await readTenancy(tx, node.id, node.generation);
  if (tenancy.open) throw refuse("the node has an allocation. Release the allocation and wait for its turnover.");
  if (tenancy.unclean > 0)
    throw refuse(
      `the turnover of ${tenancy.unclean} of its ${tenancy.count} allocations did not complete, so traces of a tenant may be left. Reimage the node.`,
    );
  await orderBaseline(tx, node, { requestedBy, reason });
}
