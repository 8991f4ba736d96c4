import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../../hub/db/queries/tasks.ts";
import { Dispatcher } from "../../../hub/gateway/dispatch.ts";
import { type Session, Sessions } from "../../../hub/gateway/session.ts";
import type { HubFrame } from "../../../shared/protocol/frames.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { quietLog } from "../../support/log.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

/**
 * A hub looks for queued tasks every second, and whenever the database notifies it about new tasks. A hub may look for queued tasks after its welcome
 * to an agent and before it has read the agent's journal.
 */
it("the hub offers a task only after it has read the agent's journal", async () => {
  const { nodeId } = await rig.enrolled();
  const { db, inTx, signer } = rig;
  const sent: HubFrame[] = [];
  const session: Session = {
    nodeId,
    generation: 1,
    epoch: 1,
    serial: "",
    bootId: "boot-1",
    address: null,
    bootReturned: false,
    trustTold: 0,
    channel: { send: (frame) => sent.push(frame), close: () => undefined, drop: () => undefined },
    heartbeatTtlMs: 30_000,
    heardAt: 0,
    settled: false,
  };
  const sessions = new Sessions();
  sessions.add(session);
  const dispatcher = new Dispatcher({ db, inTx, sessions, signer, resolveInput: {}, log: quietLog });
  const { task } = await inTx((tx) =>
    enqueueTask(tx, {
      nodeId,
      type: "node.heartbeat_check",
      input: { nonce: "n" },
      idempotencyKey: randomUUID(),
      deadlineSeconds: 3_600,
    }),
  );
  await dispatcher.offer([nodeId]);
  expect(await readTask(db, task.id)).toMatchObject({ state: "queued", epoch: 0, attempts: 0 });
  expect(sent).toEqual([]);
  await dispatcher.welcomed(session, []);
  expect(sent).toMatchObject([{ type: "task.offer", order: { task_id: task.id, epoch: 1 } }]);
  expect(await readTask(db, task.id)).toMatchObject({ state: "offered", epoch: 1, attempts: 1 });
});
