import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { cancelQueuedWork } from "../../../hub/db/queries/tasks.ts";
import { tasks } from "../../../hub/db/schema/index.ts";
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

it("a restore cancels each queued task that destroys data or gives a tenant an account, and no other task", async () => {
  const { db, inTx } = test.database;
  const states = ["queued", "offered", "running", "succeeded"] as const;
  const types = Object.keys(TASKS) as TaskType[];
  const rows = types.flatMap((type) => states.map((state) => ({ type, state })));
  await db.insert(tasks).values(
    rows.map(({ type, state }) => ({
      nodeId,
      type,
      state,
      input: {},
      idempotencyKey: randomUUID(),
      deadline: new Date(Date.now() + 3_600_000),
    })),
  );
  await inTx(cancelQueuedWork);
  const found = await db.select().from(tasks).where(eq(tasks.state, "cancelled"));
  const expected = types.filter((type) => TASKS[type].destructive || type === "allocation.grant_user");
  expect(expected).toContain("node.storage_cleanup");
  expect(found.map(({ type }) => type).toSorted()).toEqual(expected.toSorted());
  expect(found.every(({ errorCode, finishedAt }) => errorCode === "cancelled" && finishedAt !== null)).toBe(true);
  expect(await db.select().from(tasks)).toHaveLength(rows.length);
});
