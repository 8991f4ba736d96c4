/** Two workflows never hold one subject at the same time, even if one workflow releases the subject while the other claims it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { releaseSubjects, takeSubjects } from "../../hub/db/queries/workflow-subjects.ts";
import { workflowSubjects, workflows } from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { WorkflowId } from "../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let test: TestDatabase;
const [first, second] = [WorkflowId.parse(randomUUID()), WorkflowId.parse(randomUUID())];
const claim = (tx: Tx, workflowId: WorkflowId) => takeSubjects(tx, [{ subject: "node:a", workflowId }]);

beforeAll(async () => {
  test = await createTestDatabase();
  const row = { kind: "drain", status: "running", stage: "disable_node", input: {}, requestedBy: "ann" } as const;
  await test.database.db.insert(workflows).values([first, second].map((id) => ({ id, ...row })));
});
beforeEach(async () => {
  await test.database.db.delete(workflowSubjects);
  await test.database.inTx((tx) => claim(tx, first));
});
afterAll(() => test?.drop());

/** Wraps a database transaction so that, before each read of the transaction, `between` runs and commits in another transaction. */
const withReads = (tx: Tx, between: () => Promise<void>): Tx =>
  new Proxy(tx, {
    get(target, name) {
      if (name !== "select") return Reflect.get(target, name);
      return () => ({
        from: (table: typeof workflowSubjects) => ({
          where: (condition: Parameters<ReturnType<ReturnType<Tx["select"]>["from"]>["where"]>[0]) =>
            between().then(() => target.select().from(table).where(condition)),
        }),
      });
    },
  });

it("names the holder of a subject that is held", async () => {
  const holders = await test.database.inTx((tx) => claim(tx, second));
  expect([...holders]).toEqual([["node:a", first]]);
});

it("takes a subject that its holder releases between the claim and the read", async () => {
  let released = 0;
  const release = async (): Promise<void> => {
    released += 1;
    if (released === 1) await test.database.inTx((tx) => releaseSubjects(tx, first));
  };
  const holders = await test.database.inTx((tx) => claim(withReads(tx, release), second));
  expect([...holders]).toEqual([["node:a", second]]);
  expect(await test.database.db.select().from(workflowSubjects)).toEqual([{ subject: "node:a", workflowId: second }]);
  expect(released).toBe(2);
});

it("names the third workflow that was faster", async () => {
  const third = WorkflowId.parse(randomUUID());
  const row = { kind: "drain", status: "running", stage: "disable_node", input: {}, requestedBy: "ann" } as const;
  await test.database.db.insert(workflows).values({ id: third, ...row });
  let reads = 0;
  const handOver = async (): Promise<void> => {
    reads += 1;
    if (reads > 1) return;
    await test.database.inTx((tx) => releaseSubjects(tx, first));
    await test.database.inTx((tx) => claim(tx, third));
  };
  const holders = await test.database.inTx((tx) => claim(withReads(tx, handOver), second));
  expect([...holders]).toEqual([["node:a", third]]);
});
