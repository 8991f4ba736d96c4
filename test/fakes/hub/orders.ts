import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { NodeId, TaskId } from "../../../shared/ids.ts";
import { canonicalJson } from "../../../shared/json.ts";
import { orderSigningText, type SignedOrder, type UnsignedOrder } from "../../../shared/tasks/order.ts";

export const newNodeId = (): NodeId => NodeId.parse(randomUUID());
export const newTaskId = (): TaskId => TaskId.parse(randomUUID());

/** Signs orders as a hub does, with a key made for the test. */
export class OrderSigner {
  readonly #keys = generateKeyPairSync("ed25519");

  get key(): KeyObject {
    return this.#keys.publicKey;
  }
  get publicKey(): string {
    return String(this.key.export({ format: "jwk" }).x);
  }

  sign(nodeId: NodeId, order: Partial<UnsignedOrder> & Pick<UnsignedOrder, "type" | "input">): SignedOrder {
    const unsigned: UnsignedOrder = {
      task_id: newTaskId(),
      node_id: nodeId,
      epoch: 1,
      input_sha256: createHash("sha256").update(canonicalJson(order.input)).digest("hex"),
      lease_seconds: 60,
      not_after: new Date(Date.now() + 3_600_000).toISOString(),
      ...order,
    };
    const signature = sign(null, Buffer.from(orderSigningText(unsigned)), this.#keys.privateKey).toString("base64url");
    return { ...unsigned, signature };
  }
}
