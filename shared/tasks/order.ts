import { z } from "zod";
import { NodeId, TaskId } from "../ids.ts";
import { canonicalJson, Json } from "../json.ts";

/**
 * A signed task order of the hub (architecture 11): the Ed25519 signature covers node, task, epoch, type, hash of the input, lease and expiry. The
 * agent verifies an order's signature with the hub's order keys that the agent trusts. The agent refuses orders for other nodes, expired orders, and
 * every epoch at or below the highest known epoch of the task.
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
  /** The hub's Ed25519 signature over the text from `orderSigningText`, in base64url. */
  signature: z.string().min(80).max(100),
});
export type SignedOrder = z.output<typeof SignedOrder>;

export type UnsignedOrder = Omit<SignedOrder, "signature">;

/**
 * Returns the exact text of a task order that the hub signs. The member `format` names the format of the signed text, so that a signature is never
 * valid for a text of another format.
 */
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
