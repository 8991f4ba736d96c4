import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { readObservedMachine } from "../../../hub/db/queries/maas-machines.ts";
import { recordFailedPoll } from "../../../hub/db/queries/maas-site-watches.ts";
import { maasMachines, maasSiteWatches } from "../../../hub/db/schema/index.ts";
import { createMaasClient } from "../../../hub/maas/client.ts";
import { MaasError, type MaasPort } from "../../../hub/maas/port.ts";
import { emptyMemory } from "../../../hub/watcher/poll.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { createLog } from "../../../shared/log.ts";
import { Secret } from "../../../shared/secret.ts";
import { startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { event, machine, Region } from "../../support/listed-region.ts";
import { pollOnce } from "../../support/one-poll.ts";
import { until } from "../../support/until.ts";

const HOUR = 3_600_000;

describe("a sweep of a site", () => {
  let test: TestDatabase;
  let siteId: SiteId;
  let region: Region;
  let memory: ReturnType<typeof emptyMemory>;
  let said: Record<string, unknown>[];
  let ended: number;
  const onSweepEnded = () => {
    ended += 1;
  };
  const log = createLog("info", (line) => said.push(JSON.parse(line)));

  beforeAll(async () => {
    test = await createTestDatabase();
  });
  afterAll(() => test.drop());
  beforeEach(() => {
    siteId = randomUUID() as SiteId;
    region = new Region();
    memory = emptyMemory();
    said = [];
    ended = 0;
  });

  const poll = async (
    maas: MaasPort = region.port,
    sweepIntervalMs = HOUR,
    sweepPatienceMs = HOUR,
  ): Promise<string> => {
    const options = { log, sweepIntervalMs, sweepPatienceMs, onSweepEnded, maas };
    const polled = await pollOnce(test, { siteId, region, memory }, options);
    if (polled === "lost") return polled;
    if (polled.error !== null) throw polled.error;
    return polled.read;
  };
  const failed = (maas: MaasPort = region.port): Promise<MaasError> =>
    poll(maas, 0).then(
      () => Promise.reject(new Error("the poll succeeded")),
      (error: unknown) => (error instanceof MaasError ? error : Promise.reject(error)),
    );
  const row = async () =>
    (await test.database.db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, siteId)))[0];
  const observed = (systemId: string) => readObservedMachine(test.database.db, siteId, systemId);
  const statuses = async () => {
    const rows = await test.database.db.select().from(maasMachines).where(eq(maasMachines.siteId, siteId));
    return Object.fromEntries(rows.map((one) => [one.systemId, one.absent ? "absent" : one.status]));
  };

  it("runs as many SQL statements for 2000 machines as for 20, whether they are new, changed or the same", async () => {
    let statements = 0;
    const { query } = Client.prototype;
    const counted = async (): Promise<number> => {
      statements = 0;
      expect(await poll(region.port, 0)).toBe("all");
      return statements;
    };
    Client.prototype.query = function count(this: Client, ...args: unknown[]) {
      statements += 1;
      return Reflect.apply(query, this, args);
    } as typeof query;
    try {
      const rounds: number[][] = [];
      for (const size of [20, 2_000]) {
        siteId = randomUUID() as SiteId;
        memory = emptyMemory();
        const fleet = (status: number) => Array.from({ length: size }, (_, n) => machine(`m${n}`, status));
        const round: number[] = [];
        for (const status of [4, 6, 6]) {
          region.machines = fleet(status);
          round.push(await counted());
        }
        rounds.push(round);
      }
      expect(rounds[1]).toEqual(rounds[0]);
    } finally {
      Client.prototype.query = query;
    }
  });

  it("is due by the database's clock, whatever the hub's own clock says", async () => {
    region.machines = [machine("aaa")];
    await poll();
    const swept = (ago: string) =>
      test.database.db
        .update(maasSiteWatches)
        .set({ lastSweepAt: sql`now() - ${ago}::interval` })
        .where(eq(maasSiteWatches.siteId, siteId));
    try {
      for (const hoursAhead of [-2, 2]) {
        vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hoursAhead * HOUR });
        await swept("50 minutes");
        expect(await poll()).toBe("some");
        await swept("60 minutes");
        expect(await poll()).toBe("all");
        vi.useRealTimers();
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it("writes no row of an unchanged machine", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    const versions = async () => {
      const { rows } = await test.database.db.execute<{ xmin: string; system_id: string }>(
        `select xmin::text, system_id from maas_machines where site_id = '${siteId}' order by system_id`,
      );
      return rows;
    };
    const before = await versions();
    region.machines = [machine("aaa"), machine("bbb", 9)];
    await poll(region.port, 0);
    const after = await versions();
    expect(after[0]).toEqual(before[0]);
    expect(after[1]).not.toEqual(before[1]);
  });

  it("treats an unreadable machine neither as changed nor as gone, and counts it", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    region.machines = [machine("aaa", 9)];
    region.unreadable = [
      { systemId: "bbb", problem: "status: is a word" },
      { systemId: null, problem: "system_id: is missing" },
    ];
    expect(await poll(region.port, 0)).toBe("all");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 4 });
    expect(await row()).toMatchObject({ unreadableMachines: 2, lastErrorCode: null });
    region.feed = [event(1, "bbb")];
    expect(await poll()).toBe("some");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 4 });
  });

  it("logs each unreadable machine once, and one without an id in each sweep", async () => {
    const odd = (systemId: string | null) => ({ systemId, problem: "status: is a word" });
    region.machines = [machine("aaa")];
    region.unreadable = [odd("bbb"), odd(null)];
    await poll(region.port, 0);
    expect(said).toEqual([
      expect.objectContaining({
        level: "warn",
        site_id: siteId,
        count: 2,
        machines: ["bbb", null].map((system_id) => ({ system_id, problem: "status: is a word" })),
      }),
    ]);
    await poll(region.port, 0);
    region.feed = [event(1, "bbb")];
    await poll();
    expect(said.slice(1)).toMatchObject([{ count: 1, machines: [{ system_id: null }] }]);
    region.machines = [machine("aaa"), machine("bbb")];
    region.unreadable = [];
    await poll(region.port, 0);
    region.machines = [];
    region.unreadable = ["aaa", "bbb", ...Array.from({ length: 25 }, (_, n) => `m${n}`)].map(odd);
    await poll(region.port, 0);
    expect(said.slice(2)).toMatchObject([{ count: 27, machines: { length: 20 } }]);
  });

  /** Simulates a request for all machines that MAAS answers only after the test has called `arrives`. */
  const slowList = (machines: ReturnType<typeof machine>[]) => {
    const { promise, resolve: arrives } = Promise.withResolvers<void>();
    const slow = { ...region.port, listMachines: () => promise.then(() => ({ machines, unreadable: [] })) };
    return { slow, arrives };
  };

  it("is not awaited when the feed goes back while it runs, because its list may be older", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    region.feed = [event(500, "aaa")];
    await poll();
    const { slow, arrives } = slowList([machine("aaa", 6), machine("bbb", 6)]);
    expect(await poll(slow, 0, 10)).toBe("some");
    region.feed = [event(3, "aaa")];
    region.machines = [machine("aaa", 9), machine("bbb", 9)];
    expect(await poll(slowList([]).slow, HOUR, 10)).toBe("some");
    arrives();
    await until("the list", () => (ended > 0 ? true : undefined));
    expect(await poll()).toBe("some");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 4 });
    // Another hub must sweep too, because it does not know that the first hub is still reading the list of machines.
    memory = emptyMemory();
    expect(await poll()).toBe("all");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 9 });
  });

  it("runs beside the polls when it is slow, and the polls' newer results win", async () => {
    region.machines = [machine("aaa"), machine("bbb"), machine("ccc")];
    await poll();
    expect(ended).toBe(0);
    const { slow, arrives } = slowList([machine("aaa", 6), machine("bbb", 6), machine("ccc", 6)]);
    expect(await poll(slow, 0, 10)).toBe("some");
    region.machines = [machine("aaa", 9), machine("bbb", 6), machine("ccc")];
    region.feed = [event(1, "aaa")];
    expect(await poll(slow, 0, 10)).toBe("some");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 4, ccc: 4 });
    arrives();
    // The watcher signals that it has read the list of machines, so the test need not wait for a poll.
    await until("the list", () => (ended > 0 ? true : undefined));
    // Machine ccc changed and changed back while the watcher read the list of machines. The event about machine ccc shows that the list of machines
    // has an old status of ccc. The watcher must not store the old status of machine ccc from the list of machines.
    region.feed.push(event(2, "ccc"));
    expect(await poll(slow, 0, 10)).toBe("all");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 6, ccc: 4 });
    expect(memory.sweep).toBeNull();
  });

  it("keeps the result of the events when it fails, and stays due until it succeeds", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    const broken = {
      ...region.port,
      listMachines: () =>
        Promise.reject(new MaasError({ code: "bad_answer", operation: "GET machines/", message: "it breaks off" })),
    };
    region.machines = [machine("aaa", 9)];
    region.feed = [event(7, "aaa")];
    expect((await failed(broken)).code).toBe("bad_answer");
    expect(await statuses()).toEqual({ aaa: 9, bbb: 4 });
    expect((await row())?.eventCursor).toBe(7);
    memory.sweepNotBefore = 0;
    await poll(region.port, 0);
    expect(await statuses()).toEqual({ aaa: 9, bbb: "absent" });
  });

  it("is not retried at once after a failure, and its error stays visible until it succeeds", async () => {
    region.machines = [machine("aaa")];
    await poll();
    const error = new MaasError({ code: "bad_answer", operation: "GET machines/", message: "it breaks off" });
    await failed({ ...region.port, listMachines: () => Promise.reject(error) });
    expect(memory.sweepNotBefore).toBeGreaterThan(0);
    const recorded = async () => recordFailedPoll(test.database.db, siteId, (await row())?.fence ?? 0, error.code);
    await recorded();
    memory.sweepNotBefore = Number.POSITIVE_INFINITY;
    expect([await poll(region.port, 0), (await row())?.lastErrorCode]).toEqual(["some", "bad_answer"]);
    memory.sweepNotBefore = 0;
    expect([await poll(region.port, 0), (await row())?.lastErrorCode]).toEqual(["all", null]);
    await recorded();
    expect([await poll(), (await row())?.lastErrorCode]).toEqual(["some", null]);
  });

  it("copes with a machine of an unknown shape, a text that no database stores, and a truncated answer", async () => {
    const simulator = await startMaasSimulator({ machines: 3 });
    const maas = createMaasClient({ baseUrl: simulator.url, apiKey: new Secret(simulator.apiKey) });
    const ids: string[] = [];
    for (const n of [1, 2, 3]) {
      const power = { address: bmcAddress(n), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
      const made = await maas.createMachine({ hostname: `c07u4${n}`, architecture: "amd64/generic", power });
      ids.push(made.systemId);
    }
    const [drifted = "", odd = "", plain = ""] = ids;
    await poll(maas);
    Object.assign(simulator.sim.region.machine(drifted), { locked: "perhaps" });
    simulator.sim.region.machine(odd).errorDescription = `broken\u0000 half ${"\ud83d"}`;
    expect(await poll(maas, 0)).toBe("all");
    expect(await row()).toMatchObject({ unreadableMachines: 1 });
    expect((await observed(odd))?.errorDescription).toBe("broken half \ufffd");
    expect((await observed(drifted))?.absent).toBe(false);
    simulator.sim.region.state.machines = simulator.sim.region.state.machines.filter((one) => one.systemId !== plain);
    simulator.sim.faults.add({ match: { method: "GET", path: "machines/" }, kind: "truncated_body", times: 1 });
    expect((await failed(maas)).code).toBe("bad_answer");
    expect((await observed(plain))?.absent).toBe(false);
    for (const one of simulator.sim.region.state.machines) Object.assign(one, { locked: "perhaps" });
    memory.sweepNotBefore = 0;
    expect(await failed(maas)).toMatchObject({ code: "bad_answer", operation: "GET machines/" });
    const gone = and(eq(maasMachines.siteId, siteId), eq(maasMachines.absent, true));
    expect(await test.database.db.select().from(maasMachines).where(gone)).toEqual([]);
    await simulator.close();
  });
});
