import { z } from "zod";
import { NodeId, TaskId } from "../ids.ts";
import { canonicalJson, Json } from "../json.ts";

/**
 * The hub's Ed25519 signature of a task order (architecture 11) covers node, task, epoch, type, hash of the input, lease and expiry. An agent refuses
 * orders for other nodes, expired orders, and every epoch (delivery number) at or below the task's highest known one.
 */
export const SignedOrder = z.strictObject({
  task_id: TaskId,
  node_id: NodeId,
  epoch: z.int().min(1),
  type: z.string().min(1).max(64),
  input: Json,
  /** The SHA-256 of the task's input, computed over `canonicalJson(input)`, in hex. */
  input_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  lease_seconds: z.int().min(1),
  not_after: z.iso.datetime({ offset: true }),
  signature: z.string().min(80).max(100),
});
export type SignedOrder = z.output<typeof SignedOrder>;

export type UnsignedOrder = Omit<SignedOrder, "signature">;

/** The signed text of a task order names its format, so that the signature is never valid for a text of another format. */
export function orderSigningText(order: UnsignedOrder): string {
  return canonicalJson({
    format: "muster-task-order/1",
    task_id: order.task_id,
    node_id: order.node_id,
    epoch: order.epoch,
    type: order.type,
    input_sha256: order.input_sha256,
    lease_seconds: order.lease_seconds,
    not_after: order.not_after,
  });
}
