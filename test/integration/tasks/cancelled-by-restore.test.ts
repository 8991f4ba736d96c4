import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { cancelQueuedWork, extendHeldTasks, lapseTasks, reconcileDeliveries } from "../../../hub/db/queries/tasks.ts";
import { type Task, tasks } from "../../../hub/db/schema/index.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { TASKS, type TaskType } from "../../../shared/tasks/index.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { insertSite } from "../../support/site.ts";
import { addNodeInService } from "../../support/site-nodes.ts";

let test: TestDatabase;
let nodeId: NodeId;
beforeAll(async () => {
  test = await createTestDatabase();
  const siteId = await insertSite(test.database.db);
  nodeId = await test.database.inTx((tx) => addNodeInService(tx, { siteId, hostname: "h1" }));
});
afterAll(() => test?.drop());

const taskOf = (type: TaskType, state: Task["state"]) => ({
  nodeId,
  type,
  state,
  input: {},
  idempotencyKey: randomUUID(),
  deadline: new Date(Date.now() + 3_600_000),
});

type Ends = (nodeId: NodeId) => Promise<unknown>;
const silence: Ends = async (of) => {
  await test.database.db
    .update(tasks)
    .set({ leaseUntil: new Date(0) })
    .where(eq(tasks.nodeId, of));
  await test.database.inTx((tx) => lapseTasks(tx));
};
const emptyJournal: Ends = (of) => test.database.inTx((tx) => reconcileDeliveries(tx, of, []));

it.each([
  ["whose agent stays silent for the longer lease", silence],
  ["of which its agent's journal knows nothing", emptyJournal],
])("a restore never repeats a task that destroys data or gives a tenant an account, and %s", async (_case, ends) => {
  const { db, inTx } = test.database;
  await db.delete(tasks);
  for (const state of ["offered", "running"] as const) {
    const types = Object.keys(TASKS) as TaskType[];
    await db
      .insert(tasks)
      .values(types.map((type) => ({ ...taskOf(type, state), epoch: 1, attempts: 1, maxAttempts: 3 })));
  }
  await inTx(extendHeldTasks);
  await ends(nodeId);
  for (const { type, state } of await db.select().from(tasks))
    expect({ type, state }).toEqual({
      type,
      state: TASKS[type as TaskType].destructive || type === "allocation.grant_user" ? "failed" : "queued",
    });
});

it("a restore cancels each queued task that destroys data or gives a tenant an account, and no other task", async () => {
  const { db, inTx } = test.database;
  const states = ["queued", "offered", "running", "succeeded"] as const;
  const types = Object.keys(TASKS) as TaskType[];
  const rows = types.flatMap((type) => states.map((state) => ({ type, state })));
  await db.delete(tasks);
  await db.insert(tasks).values(rows.map(({ type, state }) => taskOf(type, state)));
  await inTx(cancelQueuedWork);
  const found = await db.select().from(tasks).where(eq(tasks.state, "cancelled"));
  const expected = types.filter((type) => TASKS[type].destructive || type === "allocation.grant_user");
  expect(expected).toContain("node.storage_cleanup");
  expect(found.map(({ type }) => type).toSorted()).toEqual(expected.toSorted());
  expect(found.every(({ errorCode, finishedAt }) => errorCode === "cancelled" && finishedAt !== null)).toBe(true);
  expect(await db.select().from(tasks)).toHaveLength(rows.length);
});
