import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { z } from "zod";
import type { NodeId } from "../shared/ids.ts";
import { canonicalJson } from "../shared/json.ts";
import type { OrderRejection } from "../shared/protocol/frames.ts";
import { orderSigningText, type SignedOrder } from "../shared/tasks/order.ts";

/** How long after its deadline an order stays valid, because the host knows the hub's time only from the last welcome frame. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

/** Makes the hub's order key from the text in the agent's configuration, which is raw base64url or PEM. */
export const signingKey = (text: string): KeyObject =>
  text.startsWith("-----BEGIN")
    ? createPublicKey(text)
    : createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: text }, format: "jwk" });

const RAW_OR_PEM = /^([A-Za-z0-9_-]{43}|-----BEGIN PUBLIC KEY-----[\s\S]+)$/;

/** Whether a text is a valid Ed25519 key. The agent checks the hub's order key when the agent starts, not at the first order. */
export function isSigningKey(text: string): boolean {
  try {
    return RAW_OR_PEM.test(text) && signingKey(text).asymmetricKeyType === "ed25519";
  } catch {
    // The text of the hub's order key looks like PEM but contains no public key.
    return false;
  }
}

export interface OrderContext {
  /** The hub's public keys for orders, which are two keys during a rotation of the order key. */
  readonly keys: readonly KeyObject[];
  readonly nodeId: NodeId;
  readonly highestEpoch: number;
  readonly now: Date;
  /** The schema of the input of the order's task type, or null if this agent does not have the task type. */
  readonly input: z.ZodType | null;
}

export function judgeOrder(
  order: SignedOrder,
  context: OrderContext,
): { reason: OrderRejection; message: string } | null {
  const reject = (reason: OrderRejection, message: string) => ({ reason, message });
  const { signature, ...unsigned } = order;
  const [text, signed] = [Buffer.from(orderSigningText(unsigned)), Buffer.from(signature, "base64url")];
  if (!context.keys.some((key) => verify(null, text, key, signed)))
    return reject("bad_signature", "The order is not signed with this hub's task key.");
  if (order.node_id !== context.nodeId) return reject("wrong_node", "The order is for another node.");
  if (new Date(order.not_after).getTime() + CLOCK_TOLERANCE_MS < context.now.getTime())
    return reject(
      "expired",
      `The order expired at ${order.not_after}; the host's clock says ${context.now.toISOString()}.`,
    );
  if (order.epoch <= context.highestEpoch)
    return reject("replayed", `Epoch ${order.epoch} is not above ${context.highestEpoch}, which was received before.`);
  if (createHash("sha256").update(canonicalJson(order.input)).digest("hex") !== order.input_sha256)
    return reject("input_mismatch", "The input is not the one that was signed.");
  if (context.input === null) return reject("unsupported_task", `This agent has no task type ${order.type}.`);
  const parsed = context.input.safeParse(order.input);
  if (!parsed.success)
    return reject(
      "invalid_input",
      parsed.error.issues
        .map((issue) => `${issue.path.join(".")}: ${issue.message}`)
        .join("; ")
        .slice(0, 1000),
    );
  return null;
}
