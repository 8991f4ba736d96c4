/** Runs the workflow engines of two hubs while connections to the database break during commits (decision P2). */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../hub/db/client.ts";
import { sql } from "../../hub/db/orm.ts";
import { startWorkflowRunner, type WorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import { findHistoryFaults } from "../support/claim-history.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { quietLog } from "../support/log.ts";
import { type Fate, type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.ts";
import { insertToy, toyStage, toyWorkflow } from "../support/toy-workflow.ts";
import { until } from "../support/until.ts";

const STAGES = ["a", "b", "c", "d"];
const WORKFLOWS = 24;

describe("two hubs on a database that loses connections", () => {
  let test: TestDatabase;
  let proxy: PostgresProxy;
  let hubs: { database: Database; runner: WorkflowRunner }[] = [];

  beforeAll(async () => {
    test = await createTestDatabase();
    await test.database.db.execute(sql`create table effects (workflow_id uuid, stage text)`);
    proxy = await startPostgresProxy(test.url);
  });
  afterEach(async () => {
    proxy.decide = () => "pass";
    for (const { database, runner } of hubs.splice(0)) {
      await runner.close();
      await database.close();
    }
    await test.database.db.execute(sql`truncate effects, workflows, workflow_events cascade`);
  });
  afterAll(async () => {
    await proxy?.close();
    await test?.drop();
  });

  const workflow = toyWorkflow(
    STAGES.map((name) =>
      toyStage(name, async ({ workflowId, stage }) => ({
        kind: "done",
        message: "done",
        commit: (tx) => tx.execute(sql`insert into effects values (${workflowId}, ${stage})`).then(() => undefined),
      })),
    ),
  );
  const startHubs = (): void => {
    hubs = [1, 2].map((hub) => {
      const database = openDatabase({ url: proxy.url, poolSize: 6, applicationName: `hub-${hub}`, log: quietLog });
      const runner = startWorkflowRunner({
        ...database,
        hubId: randomUUID(),
        workflows: [workflow],
        // In the test, as in a hub, a database error does not count as an error of the stage.
        classifyError: () => null,
        log: quietLog,
        databaseUrl: proxy.url,
        concurrency: 8,
        leaseSeconds: 1,
      });
      return { database, runner };
    });
  };
  const completed = async (): Promise<number> =>
    Number(
      (await test.database.pool.query("select count(*) from workflows where status = 'completed'")).rows[0]?.count,
    );
  const moved = async (): Promise<number> =>
    Number((await test.database.pool.query("select count(*) from workflow_events")).rows[0]?.count);
  const runAll = async (meanwhile: () => Promise<void> | void = () => undefined): Promise<void> => {
    for (let n = 0; n < WORKFLOWS; n += 1) await insertToy(test.database.db, "a");
    startHubs();
    await meanwhile();
    await until("all are completed", async () => ((await completed()) === WORKFLOWS ? true : undefined), {
      timeoutMs: 120_000,
    });
  };
  const expectOnce = async (): Promise<void> => {
    const effects = await test.database.pool.query(
      "select workflow_id, stage, count(*)::int as times from effects group by 1, 2",
    );
    expect(effects.rows.filter((row) => row.times !== 1)).toEqual([]);
    expect(effects.rows).toHaveLength(WORKFLOWS * STAGES.length);
    const events = await test.database.pool.query(
      "select workflow_id, stage, status, count(*)::int as times from workflow_events group by 1, 2, 3",
    );
    expect(events.rows.filter((row) => row.times !== 1)).toEqual([]);
    expect(events.rows).toHaveLength(WORKFLOWS * STAGES.length * 2);
    expect(await findHistoryFaults(test.database.pool)).toEqual([]);
  };
  const oneIn = (times: number, fate: Fate): Fate => (Math.random() * times < 1 ? fate : "pass");

  it.each(["lost_before", "lost_after"] as const)("survive commits that are %s", async (fate) => {
    const before = proxy.met.commit[fate];
    proxy.decide = (moment) => (moment === "commit" ? oneIn(4, fate) : "pass");
    await runAll();
    expect(proxy.met.commit[fate] - before).toBeGreaterThan(5);
    await expectOnce();
  });

  it("survive faults in all kinds of statements, including claims and renewals", async () => {
    proxy.decide = () => oneIn(25, Math.random() < 0.5 ? "lost_before" : "lost_after");
    await runAll();
    await expectOnce();
  });

  it("survive a server that ends all connections repeatedly", async () => {
    await runAll(async () => {
      for (let cut = 0; cut < 12 && (await completed()) < WORKFLOWS; cut += 1) {
        const before = await moved();
        await until(
          "work goes on",
          async () => (await moved()) > before || (await completed()) === WORKFLOWS || undefined,
          { everyMs: 10 },
        );
        await test.database.pool.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'hub-%' and datname = current_database()",
        );
      }
    });
    await expectOnce();
  });
});
