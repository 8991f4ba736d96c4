import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../../hub/db/orm.ts";
import { readObservedMachine } from "../../../hub/db/queries/maas-machines.ts";
import { waitKey } from "../../../hub/db/queries/workflow-wakes.ts";
import { maasSiteWatches, workflows } from "../../../hub/db/schema/index.ts";
import { createMaasClient } from "../../../hub/maas/client.ts";
import type { MaasPort } from "../../../hub/maas/port.ts";
import { startWatcher, type Watcher } from "../../../hub/watcher/watcher.ts";
import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { quietLog } from "../../support/log.ts";
import { insertSite } from "../../support/site.ts";
import { until } from "../../support/until.ts";

describe("the site watcher", () => {
  let simulator: MaasSimulator;
  let database: TestDatabase;
  let maas: MaasPort;
  let siteId: SiteId;
  const watchers: Watcher[] = [];
  let requests: string[] = [];

  beforeAll(async () => {
    simulator = await startMaasSimulator({ machines: 3, speed: 300 });
    database = await createTestDatabase();
    maas = createMaasClient({ baseUrl: simulator.url, apiKey: new Secret(simulator.apiKey) });
    siteId = await insertSite(database.database.db, { apiBaseUrl: simulator.url });
  });
  afterAll(async () => {
    for (const watcher of watchers) await watcher.close();
    await simulator.close();
    await database.drop();
  });

  const watch = (hubId = randomUUID()): Watcher => {
    const { db, inTx } = database.database;
    const client = createMaasClient({
      baseUrl: simulator.url,
      apiKey: new Secret(simulator.apiKey),
      onRequest: (report) => requests.push(report.operation),
    });
    const watcher = startWatcher({
      db,
      inTx,
      hubId,
      clientFor: async () => client,
      log: quietLog,
      pollIntervalMs: 50,
      sweepIntervalMs: 3_600_000,
    });
    watchers.push(watcher);
    return watcher;
  };
  const observed = (systemId: string) => readObservedMachine(database.database.db, siteId, systemId);
  const waiting = (id: WorkflowId, systemId: string) => ({
    id,
    kind: "test",
    status: "running" as const,
    stage: "wait",
    input: {},
    siteId,
    waitOn: waitKey.machine(siteId, systemId),
    wakeAt: sql`now() + interval '1 hour'`,
  });

  it("follows a machine through its statuses and wakes the workflow that waits for it", async () => {
    watch();
    const { systemId } = await maas.createMachine({
      hostname: "c07u41",
      architecture: "amd64/generic",
      power: { address: bmcAddress(1), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) },
    });
    const id = randomUUID() as WorkflowId;
    await database.database.db.insert(workflows).values(waiting(id, systemId));
    await until("the machine is seen as New", async () =>
      (await observed(systemId))?.status === 0 ? true : undefined,
    );
    await maas.commission(systemId);
    await until("it is seen as Ready", async () => ((await observed(systemId))?.status === 4 ? true : undefined));
    const [row] = await database.database.db
      .select({ due: sql<boolean>`wake_at <= now()` })
      .from(workflows)
      .where(sql`id = ${id}`);
    expect(row?.due).toBe(true);
    await database.database.db.delete(workflows);
  });

  it("marks a machine absent after a direct read does not find it", async () => {
    const { systemId } = await maas.createMachine({
      hostname: "c07u42",
      architecture: "amd64/generic",
      power: { address: bmcAddress(2), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) },
    });
    await database.database.db.insert(workflows).values(waiting(randomUUID() as WorkflowId, systemId));
    await until("it is seen", async () => ((await observed(systemId))?.absent === false ? true : undefined));
    simulator.sim.region.state.machines = simulator.sim.region.state.machines.filter(
      (machine) => machine.systemId !== systemId,
    );
    await until("it is absent", async () => ((await observed(systemId))?.absent === true ? true : undefined));
    await database.database.db.delete(workflows);
  });

  it("makes no more requests to MAAS when more workflows wait", async () => {
    const perLook = async (): Promise<number> => {
      requests = [];
      await until("twenty polls", () =>
        requests.filter((operation) => operation.includes("events")).length >= 20 ? true : undefined,
      );
      return requests.length / requests.filter((operation) => operation.includes("events")).length;
    };
    const known = (await maas.listMachines()).machines.map((machine) => machine.systemId);
    const one = known[0] ?? "";
    await database.database.db.insert(workflows).values(waiting(randomUUID() as WorkflowId, one));
    const withOne = await perLook();
    await database.database.db
      .insert(workflows)
      .values(Array.from({ length: 300 }, (_, i) => waiting(randomUUID() as WorkflowId, i === 0 ? one : `zz${i}`)));
    const withMany = await perLook();
    expect(withMany).toBeLessThanOrEqual(withOne * 1.1);
    await database.database.db.delete(workflows);
  });

  it("recovers by a sweep when MAAS's event ids went back", async () => {
    await database.database.db.update(maasSiteWatches).set({ eventCursor: 9_000_000 });
    await until("the cursor follows the feed again", async () => {
      const [row] = await database.database.db.select().from(maasSiteWatches);
      return row !== undefined && (row.eventCursor ?? 0) < 9_000_000 ? true : undefined;
    });
  });

  it("runs on one hub at a time, and the next hub takes over when the first closes", async () => {
    const [before] = await database.database.db.select().from(maasSiteWatches);
    watch();
    requests = [];
    await until("ten polls", () =>
      requests.filter((operation) => operation.includes("events")).length >= 10 ? true : undefined,
    );
    const [during] = await database.database.db.select().from(maasSiteWatches);
    expect(during?.leaseOwner).toBe(before?.leaseOwner);
    await watchers[0]?.close();
    await until("the other hub polls", async () => {
      const [row] = await database.database.db.select().from(maasSiteWatches);
      return row !== undefined &&
        row.leaseOwner !== null &&
        row.leaseOwner !== before?.leaseOwner &&
        row.fence > (before?.fence ?? 0)
        ? true
        : undefined;
    });
  });

  it("records why it cannot poll, and continues when MAAS answers again", async () => {
    const fault = (method: string, body?: unknown) =>
      fetch(`${simulator.controlUrl}/faults`, {
        method,
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    await fault("POST", {
      match: { method: "GET", op: "query" },
      kind: "status",
      code: 503,
      body: "Unavailable",
      times: 3,
    });
    await until("the failure is recorded", async () => {
      const [row] = await database.database.db.select().from(maasSiteWatches);
      return row !== undefined && row.lastErrorAt !== null ? true : undefined;
    });
    await until("it polls again", async () => {
      const [row] = await database.database.db.select().from(maasSiteWatches);
      return row?.consecutiveFailures === 0 ? true : undefined;
    });
  });
});
