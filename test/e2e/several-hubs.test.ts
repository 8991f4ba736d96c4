import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readBatch } from "../../hub/db/queries/batches.ts";
import { BatchDetail, BatchVerbResult, DecommissionBatchCreated } from "../../shared/api/batches.ts";
import { BatchId } from "../../shared/ids.ts";
import { findHistoryFaults } from "../support/claim-history.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { SimulatorControl } from "../support/simulator-control.ts";
import { readCounters } from "../support/simulator-counters.ts";
import { tellUnfinished } from "../support/unfinished.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";

const HOSTS = demoHosts(8);
const KILLS = 8;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

describe("three hubs on one PostgreSQL, killed and stopped at random while eight hosts are onboarded", () => {
  const stateDir = mkdtempSync(join(memoryFolder(), "muster-hubs-"));
  let database: TestDatabase;
  let rig: Rig;

  beforeAll(async () => {
    database = await createTestDatabase();
    rig = await startRig({
      stateDir,
      machines: HOSTS.length,
      speed: 30,
      hubs: 3,
      databaseUrl: database.url,
      hubEnv: { MUSTER_DATABASE_POOL_SIZE: "6" },
    });
  });
  afterAll(async () => {
    await rig?.stop();
    await database?.drop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  it("all eight hosts become active, no outside effect happens twice, and the history has no overlapping runs", async () => {
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: HOSTS });
    const explain = () => tellUnfinished(rig.api, stateDir);
    const hubsThatWorked = async (): Promise<number> => {
      const { rows } = await database.database.pool.query(
        "select distinct hub_id from workflow_events where hub_id is not null",
      );
      return rows.length;
    };
    const activeNodes = async (): Promise<number> =>
      (await rig.api.nodes()).filter((node) => node.status === "active").length;

    for (let kill = 0; kill < KILLS; kill += 1) {
      await pause(300 + Math.random() * 1_500);
      const hub = rig.hubs[Math.floor(Math.random() * rig.hubs.length)];
      if (hub === undefined) throw new Error("no hub");
      const victim = hub.pid();
      if (kill === 3) {
        // The test pauses a hub until the hub's leases have expired. After a hub's pause, another hub has taken over its workflows, and the engine
        // drops the paused hub's late results.
        process.kill(victim, "SIGSTOP");
        await pause(5_000);
        process.kill(victim, "SIGCONT");
        continue;
      }
      const worked = await hubsThatWorked();
      process.kill(victim, "SIGKILL");
      await until("the hub is started again", () => (hub.pid() === victim ? undefined : true));
      await hub.ready();
      // Before the next kill, the test waits until another hub has run a stage, so that each kill hits a working hub.
      await until(
        "another hub has done some of the work, or all of it is done",
        async () => (await hubsThatWorked()) > worked || (await activeNodes()) === HOSTS.length || undefined,
        // An agent that a hub has refused at the wrong moment may wait for a minute or two before it tries again.
        { timeoutMs: LONG_WAIT_MS, explain },
      );
    }

    await until("all eight hosts are active", async () => (await activeNodes()) === HOSTS.length || undefined, {
      timeoutMs: LONG_WAIT_MS,
      everyMs: 500,
      explain,
    });
    const counters = await readCounters(rig.maas.control);
    expect(Object.keys(counters.machines)).toHaveLength(HOSTS.length);
    for (const [machine, { commission, deploy, release }] of Object.entries(counters.machines))
      expect({ machine, commission, deploy, release }).toEqual({ machine, commission: 1, deploy: 1, release: 0 });
    expect((await rig.api.onboardings()).map((onboarding) => onboarding.status)).toEqual(HOSTS.map(() => "completed"));
    expect(await findHistoryFaults(database.database.pool)).toEqual([]);
    const { rows: handedOn } = await database.database.pool.query(
      "select workflow_id from workflow_events where hub_id is not null group by workflow_id having count(distinct hub_id) > 1",
    );
    expect(handedOn).not.toEqual([]);
  });

  /** Waits until the batch has stopped at its one failure, and then recovers the failed node and resumes the batch. */
  async function continueAfterFailure(id: BatchId): Promise<void> {
    const batches = `/api/v1/admin/decommission-batches/${id}`;
    const stopped = await until(
      "the batch to stop at its failure",
      async () => {
        const seen = await rig.api.call(BatchDetail, "GET", batches).catch(() => null);
        return seen?.paused === null || (seen?.counts.running ?? 0) > 0 ? undefined : (seen ?? undefined);
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 250 },
    );
    expect(stopped).toMatchObject({ failed: 1, done: false, paused: { by: null } });
    expect(stopped.paused?.reason).toContain("1 host of the batch has failed");
    expect(stopped.failures.flatMap(({ hosts }) => hosts)).toHaveLength(1);
    expect(stopped.counts.pending).toBeGreaterThan(0);
    const reason = "MAAS was asked again";
    await rig.api.call(BatchVerbResult, "POST", `${batches}/recover`, { reason });
    await rig.api.call(BatchDetail, "POST", `${batches}/resume`, { reason });
  }

  it.each(["drain", "release"] as const)(
    "a batch does a %s on all eight nodes although two of the three hubs are killed, and no outside effect happens twice",
    async (mode) => {
      const { db, pool } = database.database;
      const [node] = await rig.api.nodes();
      const reason = "the rack moves";
      const body = {
        site_id: node?.site_id,
        operation: mode === "drain" ? { mode, reason, deadline_seconds: 0, force: true } : { mode, reason },
        filter: { status: mode === "drain" ? "active" : "retired" },
        expected_count: HOSTS.length,
      };
      const stops = mode === "release" ? { stop_after_failures: 1 } : {};
      if (mode === "release") {
        // MAAS refuses the release of one node of the batch. Only two releases of the batch run at once, so several nodes still wait when the batch
        // stops because of the refused release.
        await pool.query("update maas_site_profiles set batch_max_parallel = 2");
        const refused = { match: { op: "release" }, kind: "status", code: 400, body: "not this one" };
        await new SimulatorControl(rig.maas.control).fault(refused);
      }
      const created = await rig.api.call(DecommissionBatchCreated, "POST", "/api/v1/admin/decommissions/batch", {
        ...body,
        ...stops,
      });
      const id = BatchId.parse(created.batch_id);
      await until("a hub to work on the batch", async () => {
        const { rows } = await pool.query(
          "select 1 from workflow_events e join workflows w on w.id = e.workflow_id where w.batch_id = $1 and e.hub_id is not null",
          [id],
        );
        return rows.length > 0 ? true : undefined;
      });
      const victims = rig.hubs.slice(0, 2).map((hub) => ({ hub, pid: hub.pid() }));
      for (const { pid } of victims) process.kill(pid, "SIGKILL");
      if (mode === "release") await continueAfterFailure(id);
      const batch = await until(
        "the batch to be done",
        async () => {
          const seen = await readBatch(db, "decommission", id);
          return seen?.done ? seen : undefined;
        },
        { timeoutMs: LONG_WAIT_MS, everyMs: 250 },
      );
      expect(batch, JSON.stringify(batch.failures)).toMatchObject({ total: HOSTS.length, succeeded: HOSTS.length });
      for (const { hub, pid } of victims) {
        await until("the hub is started again", () => (hub.pid() === pid ? undefined : true));
        await hub.ready();
      }
      expect((await rig.api.nodes()).map(({ status }) => status)).toEqual(HOSTS.map(() => "retired"));
      const counters = Object.values((await readCounters(rig.maas.control)).machines);
      expect(counters.map(({ release }) => release)).toEqual(HOSTS.map(() => (mode === "release" ? 1 : 0)));
      expect(await findHistoryFaults(pool)).toEqual([]);
    },
  );
});
