import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TASKS } from "../shared/tasks/index.ts";
import type { SignedOrder } from "../shared/tasks/order.ts";
import { isTaskType } from "../shared/tasks/task-types.ts";
import { newNodeId, OrderSigner } from "../test/fakes/hub/orders.ts";
import { judgeOrder, signingKey } from "./orders.ts";

const nodeId = newNodeId();
const signer = new OrderSigner();
const context = { keys: [signingKey(signer.publicKey)], nodeId, highestEpoch: 0, now: new Date() };
const check = { type: "node.heartbeat_check", input: { nonce: "n" } } as const;
const verdict = (order: SignedOrder, more: Partial<typeof context> = {}) => {
  const input = isTaskType(order.type) ? TASKS[order.type].input : null;
  return judgeOrder(order, { ...context, input, ...more })?.reason ?? "accepted";
};

describe("an order", () => {
  it("from this hub for this host is accepted, with the key in either form", () => {
    const order = signer.sign(nodeId, check);
    expect(verdict(order)).toBe("accepted");
    const pem = signingKey(signer.key.export({ type: "spki", format: "pem" }).toString());
    expect(verdict(order, { keys: [pem] })).toBe("accepted");
  });

  it("signed with another key is refused", () => {
    expect(verdict(new OrderSigner().sign(nodeId, check))).toBe("bad_signature");
    expect(verdict({ ...signer.sign(nodeId, check), signature: "A".repeat(86) })).toBe("bad_signature");
  });

  it("is refused after any signed member was changed", () => {
    const order = signer.sign(nodeId, check);
    const changes = [
      { task_id: signer.sign(nodeId, check).task_id },
      { node_id: newNodeId() },
      { epoch: 2 },
      { type: "node.drain" },
      { input_sha256: "0".repeat(64) },
      { lease_seconds: 61 },
      { not_after: new Date(Date.now() + 7_200_000).toISOString() },
    ];
    for (const change of changes) expect(verdict({ ...order, ...change })).toBe("bad_signature");
  });

  it("is refused when its input is not the signed one", () => {
    const order = signer.sign(nodeId, check);
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 20 }), (nonce) => {
        fc.pre(nonce !== "n");
        expect(verdict({ ...order, input: { nonce } })).toBe("input_mismatch");
      }),
    );
  });

  it("for another host is refused", () => {
    expect(verdict(signer.sign(newNodeId(), check))).toBe("wrong_node");
  });

  it("is refused after its deadline, with a tolerance for clocks", () => {
    const order = signer.sign(nodeId, { ...check, not_after: "2030-01-01T00:00:00.000Z" });
    expect(verdict(order, { now: new Date("2030-01-01T00:04:59Z") })).toBe("accepted");
    expect(verdict(order, { now: new Date("2030-01-01T00:05:01Z") })).toBe("expired");
  });

  it("is refused at and below the highest known epoch", () => {
    const order = signer.sign(nodeId, { ...check, epoch: 3 });
    expect([2, 3, 4].map((highestEpoch) => verdict(order, { highestEpoch }))).toEqual([
      "accepted",
      "replayed",
      "replayed",
    ]);
  });

  it("of an unknown type or with invalid input is refused", () => {
    expect(verdict(signer.sign(nodeId, { type: "node.shell", input: {} }))).toBe("unsupported_task");
    expect(verdict(signer.sign(nodeId, { type: "constructor", input: {} }))).toBe("unsupported_task");
    expect(verdict(signer.sign(nodeId, { type: "node.heartbeat_check", input: { nonce: "n", more: 1 } }))).toBe(
      "invalid_input",
    );
  });
});
