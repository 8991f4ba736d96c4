/**
 * A hub that has lost its database stops its running stages before another hub takes them over. The fences of workflows make the writes of a paused
 * hub ineffective.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../hub/db/client.ts";
import { eq, sql } from "../../hub/db/orm.ts";
import { keepWatches } from "../../hub/db/queries/maas-site-watches.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { maasSites, maasSiteWatches, workflowEvents, workflows } from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { startWorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import type { SiteId, WorkflowId } from "../../shared/ids.ts";
import { createLog } from "../../shared/log.ts";
import { type Child, startChild } from "../support/child.ts";
import { findHistoryFaults } from "../support/claim-history.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { quietLog } from "../support/log.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import { insertSite } from "../support/site.ts";
import { insertToy, toyStage, toyWorkflow } from "../support/toy-workflow.ts";
import { until } from "../support/until.ts";

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
  await test.database.db.execute(sql`create table effects (workflow_id uuid, hub_id uuid)`);
});
afterEach(() => test.database.db.execute(sql`truncate effects, workflows, workflow_events cascade`));
afterAll(() => test?.drop());

describe("a lease on a workflow", () => {
  it("ends the run in time when the database no longer answers, although no statement has failed", async () => {
    const proxy = await startPostgresProxy(test.url);
    const database = openDatabase({ url: proxy.url, poolSize: 4, applicationName: "stalled", log: quietLog });
    const [entered, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
    const runner = startWorkflowRunner({
      ...database,
      hubId: randomUUID(),
      workflows: [
        toyWorkflow([
          toyStage("one", async ({ signal }) => {
            entered.resolve();
            await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
            aborted.resolve(signal.reason);
            return { kind: "done", message: "too late" };
          }),
        ]),
      ],
      classifyError: () => null,
      log: quietLog,
      leaseSeconds: 1,
      drainMs: 10,
    });
    const id = await insertToy(test.database.db, "one");
    await entered.promise;
    proxy.decide = () => "stalled";
    expect(String(await aborted.promise)).toContain("the lease lapses");
    expect((await readWorkflow(test.database.db, id))?.status).toBe("running");
    proxy.decide = () => "pass";
    proxy.cutAll();
    await runner.close();
    await database.close();
    await proxy.close();
  });

  it("is taken over from a paused hub, and the fence drops that hub's result", async () => {
    const folder = mkdtempSync(join(tmpdir(), "muster-paused-"));
    const start = (name: string): Child =>
      startChild({
        name,
        script: "test/support/toy-hub.ts",
        env: { DATABASE_URL: test.url, HOLD_MS: "1000" },
        logFile: join(folder, `${name}.log`),
      });
    const first = start("paused");
    await first.ready;
    const id = await insertToy(test.database.db, "hold");
    const claimed = await until("the first hub runs it", async () => {
      const row = await readWorkflow(test.database.db, id);
      return row?.leaseOwner === null ? undefined : row;
    });
    first.kill("SIGSTOP");
    const second = start("other");
    const completed = await until("the other hub has done it", async () => {
      const row = await readWorkflow(test.database.db, id);
      return row?.status === "completed" ? row : undefined;
    });
    first.kill("SIGCONT");
    // Once the hub completes the workflow `next`, the engine has dropped the result of a stage that ran before the hub's pause.
    const next = await insertToy(test.database.db, "hold");
    await second.stop();
    await until("the paused hub works again", async () =>
      (await readWorkflow(test.database.db, next))?.status === "completed" ? true : undefined,
    );
    await first.stop();
    const hubs = [completed.fence, claimed?.fence];
    expect(hubs).toEqual([2, 1]);
    const { rows } = await test.database.pool.query("select hub_id from effects where workflow_id = $1", [id]);
    expect(rows).toEqual([{ hub_id: (await second.ready)["listening"] }]);
    expect(await findHistoryFaults(test.database.pool)).toEqual([]);
    rmSync(folder, { recursive: true, force: true });
  });
});

describe("a run that has lost its lease without notice", () => {
  const result = (id: WorkflowId) => ({
    kind: "done" as const,
    message: "too late",
    commit: (tx: Tx) => tx.execute(sql`insert into effects values (${id}, ${randomUUID()})`).then(() => undefined),
  });
  it.each([
    ["a result", async (id: WorkflowId) => result(id), "stage result dropped"],
    ["nothing that counts", () => Promise.reject(new Error("the database was away")), null],
  ])("does not change the row with %s, because another hub has the fence", async (_, end, told) => {
    const { db } = test.database;
    const [entered, goOn, left] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const logged: string[] = [];
    const stage = toyStage("one", async ({ workflowId }) => {
      entered?.resolve();
      await goOn?.promise;
      left?.resolve();
      return end(workflowId);
    });
    const runner = startWorkflowRunner({
      ...test.database,
      hubId: randomUUID(),
      workflows: [toyWorkflow([stage])],
      classifyError: () => null,
      log: createLog("info", (line) => logged.push(line)),
      // The workflow's lease is so long that the hub neither renews nor checks it, and does not learn of its loss.
      leaseSeconds: 3_600,
      drainMs: 10_000,
    });
    const id = await insertToy(db, "one");
    await entered?.promise;
    const taken = { leaseOwner: randomUUID(), leaseUntil: sql`now() + interval '1 hour'`, fence: 7 };
    await db.update(workflows).set(taken).where(eq(workflows.id, id));
    const before = await readWorkflow(db, id);
    goOn?.resolve();
    await left?.promise;
    await runner.close();
    expect(await readWorkflow(db, id)).toEqual(before);
    expect((await test.database.pool.query("select * from effects")).rows).toEqual([]);
    if (told !== null) expect(logged.join("")).toMatch(new RegExp(`${told}.*the fence was lost`));
  });
});

describe("the check of the claim history", () => {
  const id = randomUUID() as WorkflowId;
  const at = (seconds: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));
  const write = (
    fence: number,
    hubId: string | null,
    claimed: number | null,
    occurred: number,
    status: "succeeded" | "started" = "succeeded",
  ) =>
    test.database.db.insert(workflowEvents).values({
      workflowId: id,
      stage: `stage ${fence}`,
      attempt: 1,
      status,
      fence,
      hubId,
      claimedAt: claimed === null ? null : at(claimed),
      occurredAt: at(occurred),
    });
  const [a, b] = [randomUUID(), randomUUID()];
  const faults = async (): Promise<string[]> =>
    [...new Set((await findHistoryFaults(test.database.pool)).map(({ fault }) => fault))].sort();

  it("accepts claims one after the other, and names each kind of fault", async () => {
    const begin = async (fence: number): Promise<void> => {
      await test.database.db.execute(sql`truncate workflows, workflow_events cascade`);
      await test.database.db
        .insert(workflows)
        .values({ id, kind: "toy", status: "running", stage: "x", input: {}, fence });
    };
    await begin(3);
    await write(0, null, null, 0, "started");
    await write(1, a, 1, 2);
    await write(2, b, 2, 3);
    await write(3, a, 4, 5);
    expect(await faults()).toEqual([]);

    await begin(2);
    await write(1, a, 1, 4);
    await write(2, b, 3, 5);
    expect(await faults()).toEqual(["claims overlap"]);

    await begin(2);
    await write(2, b, 5, 6);
    await write(1, a, 1, 2);
    expect(await faults()).toEqual(["fences do not rise with the history"]);

    await begin(1);
    await write(1, a, 1, 2, "started");
    await write(1, b, 1, 2);
    expect(await faults()).toEqual(["one fence, two claims"]);

    await begin(1);
    await write(1, a, 1, 2);
    await write(1, a, 1, 3);
    expect(await faults()).toEqual(["a stage ended twice in one claim", "one claim, two commits"]);

    await begin(0);
    await write(1, null, null, 2);
    expect(await faults()).toEqual(["a move without its claim", "history above the row's fence"]);
  });
});

describe("the leases on sites", () => {
  it("are updated in one statement: own leases renewed, free and expired ones taken with a new fence, others only read", async () => {
    const { db } = test.database;
    const [us, them] = [randomUUID(), randomUUID()];
    const names = ["ours", "theirs", "lapsed", "free", "disabled"];
    const ids = new Map<string, SiteId>();
    for (const name of names)
      ids.set(name, await insertSite(db, { name, status: name === "disabled" ? "disabled" : "active" }));
    const idOf = (name: string): SiteId => {
      const id = ids.get(name);
      if (id === undefined) throw new Error(`no site ${name}`);
      return id;
    };
    const lease = async (name: string, owner: string, seconds: number, more = {}): Promise<void> => {
      const leaseUntil = sql`now() + make_interval(secs => ${seconds})`;
      await db.insert(maasSiteWatches).values({ siteId: idOf(name), leaseOwner: owner, leaseUntil, fence: 7, ...more });
    };
    await lease("ours", us, 60, { wakeRequestedAt: sql`now()`, lastErrorAt: sql`now() - interval '1 minute'` });
    await lease("theirs", them, 90, { wakeRequestedAt: sql`now() - interval '1 minute'`, lastErrorAt: sql`now()` });
    await lease("lapsed", them, -1);

    const seen = await keepWatches(db, us, 30);
    const kept = new Map(seen.map((site) => [site.siteId, site]));
    expect(seen).toHaveLength(4);
    const of = (name: string) => kept.get(idOf(name));
    expect(["ours", "theirs", "lapsed", "free"].map((name) => of(name)?.ours)).toEqual([true, false, true, true]);
    expect([of("ours")?.wake, of("theirs")?.wake]).toEqual([true, false]);
    expect(of("theirs")?.lapsesInMs).toBeGreaterThan(0);
    expect(of("theirs")?.lapsesInMs).toBeLessThanOrEqual(90_000);
    const fences = await db
      .select({ name: maasSites.name, fence: maasSiteWatches.fence, owner: maasSiteWatches.leaseOwner })
      .from(maasSiteWatches)
      .innerJoin(maasSites, eq(maasSites.id, maasSiteWatches.siteId))
      .orderBy(maasSites.name);
    expect(fences).toEqual([
      { name: "free", fence: 1, owner: us },
      { name: "lapsed", fence: 8, owner: us },
      { name: "ours", fence: 7, owner: us },
      { name: "theirs", fence: 7, owner: them },
    ]);
  });
});
