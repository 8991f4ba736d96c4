import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { createAllocation } from "../../../hub/allocations/create-allocation.ts";
import { startAllocationSweep } from "../../../hub/allocations/sweep.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readAllocation } from "../../../hub/db/queries/allocations.ts";
import { type AllocationRow, tasks } from "../../../hub/db/schema/index.ts";
import { WakeSignal } from "../../../hub/timing/wake-signal.ts";
import { AllocationCreate } from "../../../shared/api/allocations.ts";
import { makeSchedulable, SSH_KEY } from "../../support/allocatable-node.ts";
import { countersign } from "../../support/countersign.ts";
import { GatewayRig, type Identity } from "../../support/gateway-rig.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
let identity: Identity;
let sweep: { close(): Promise<void> };
beforeAll(async () => {
  const due = new WakeSignal();
  rig = await GatewayRig.start({ onTaskEnded: () => due.raise() });
  // The allocation sweep's interval is longer than the test, so only the end of a task can start a sweep.
  sweep = startAllocationSweep({ db: rig.db, inTx: rig.inTx, log: quietLog, countersign, due, everyMs: 3_600_000 });
});
beforeEach(async () => {
  identity = await rig.enrolled();
});
afterAll(async () => {
  await sweep?.close();
  await rig?.stop();
});
const kept = keptAgents(() => rig);

const REQUEST = { tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY], labels: {} };
async function allocate(): Promise<AllocationRow> {
  await rig.inTx(async (tx) => {
    await tx.execute(sql`delete from node_conditions where node_id = ${identity.nodeId}`);
    await makeSchedulable(tx, identity.nodeId);
  });
  const body = AllocationCreate.parse({ ...REQUEST, node_id: identity.nodeId });
  return rig.inTx((tx) => createAllocation(tx, body, "ann"));
}
const becomes = (row: AllocationRow, status: AllocationRow["status"]) =>
  until(`the allocation is ${status}`, async () => {
    const now = await readAllocation(rig.db, row.id);
    return now?.status === status ? now : undefined;
  });
const step = (outcome: "ok" | "failed") =>
  ({ step: "account", target: "alice", outcome, message: "", evidence: {} }) as const;

it.each([
  ["active", "ok", null],
  ["failed", "failed", "step_failed"],
] as const)("is %s as soon as the agent has answered with a step that is %s", async (status, outcome, code) => {
  const agent = await kept.connect(identity);
  const row = await allocate();
  const { order } = await agent.next("task.offer");
  expect(rig.hasSigned(order)).toBe(true);
  expect(order).toMatchObject({
    type: "allocation.grant_user",
    input: { allocation_id: row.id, login_user: "alice", ssh_keys: [SSH_KEY], root: false, plan: false },
  });
  const ref = { task_id: order.task_id, epoch: order.epoch };
  agent.send({ type: "task.ack", ...ref, state: "started" });
  agent.send({ type: "task.result", ...ref, reply: { ok: true, result: { uid: 30_001, steps: [step(outcome)] } } });
  expect(await becomes(row, status)).toMatchObject({ errorCode: code });
});

it("has failed as soon as the deadline has passed without an agent", async () => {
  const row = await allocate();
  if (row.grantTaskId === null) throw new Error("the allocation has no task");
  await rig.db.update(tasks).set({ deadline: sql`now()` }).where(eq(tasks.id, row.grantTaskId));
  const failed = await becomes(row, "failed");
  expect(failed).toMatchObject({
    errorCode: "deadline_passed",
    errorMessage: "No agent of the node was connected at the deadline of the task",
  });
});
