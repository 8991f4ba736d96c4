import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { maasSites, maasSiteWatches } from "../../../hub/db/schema/index.ts";
import type { Db } from "../../../hub/db/tx.ts";
import { createMaasClient } from "../../../hub/maas/client.ts";
import type { MaasPort } from "../../../hub/maas/port.ts";
import { startWatcher, type Watcher } from "../../../hub/watcher/watcher.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { quietLog } from "../../support/log.ts";
import { insertSite } from "../../support/site.ts";
import { until } from "../../support/until.ts";

const HOUR = 3_600_000;
type Gate = PromiseWithResolvers<void>;

describe("the loops that watch sites", () => {
  let database: TestDatabase;
  let watchers: Watcher[] = [];
  const polls = new Map<string, number>();

  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await Promise.all(watchers.map((watcher) => watcher.close()));
    watchers = [];
    polls.clear();
    await database.database.db.delete(maasSiteWatches);
    await database.database.db.delete(maasSites);
  });
  afterAll(() => database.drop());

  const addSite = (): Promise<SiteId> => insertSite(database.database.db);
  /** Simulates a MAAS region without machines, which counts the hub's polls. */
  const idle = (hub: string): MaasPort =>
    ({
      events: async () => {
        polls.set(hub, (polls.get(hub) ?? 0) + 1);
        return [];
      },
      listMachines: async () => ({ machines: [], unreadable: [] }),
    }) as unknown as MaasPort;
  const watch = (options: {
    hubId?: string;
    db?: Db;
    pollIntervalMs?: number;
    clientFor?: (siteId: SiteId, signal: AbortSignal) => Promise<MaasPort>;
  }): Watcher => {
    const { db, inTx } = database.database;
    const hubId = options.hubId ?? randomUUID();
    const clientFor = async () => idle(hubId);
    const fixed = { inTx, log: quietLog, sweepIntervalMs: HOUR };
    const watcher = startWatcher({ db, hubId, clientFor, pollIntervalMs: 50, ...fixed, ...options });
    watchers.push(watcher);
    return watcher;
  };
  const rowOf = async (siteId: SiteId) =>
    (await database.database.db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, siteId)))[0];
  const counting = (onAsked: () => void): Db =>
    new Proxy(database.database.db, {
      get: (target, name) => {
        if (name === "execute") onAsked();
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  const polled = (hub: string, times: number) =>
    until(`${times} polls`, () => ((polls.get(hub) ?? 0) >= times ? true : undefined));

  it("take a site over after its hub died, and raise the fence", async () => {
    const siteId = await addSite();
    const dead = randomUUID();
    const hubId = randomUUID();
    await database.database.db
      .insert(maasSiteWatches)
      .values({ siteId, leaseOwner: dead, leaseUntil: sql`now() + interval '3 seconds'`, fence: 7 });
    watch({ hubId });
    await polled(hubId, 1);
    const [row] = await database.database.db
      .select({ owner: maasSiteWatches.leaseOwner, fence: maasSiteWatches.fence })
      .from(maasSiteWatches);
    expect(row).toEqual({ owner: hubId, fence: 8 });
  });

  it("query the database seldom while another hub watches", async () => {
    await addSite();
    const [holder, other] = [randomUUID(), randomUUID()];
    watch({ hubId: holder });
    await polled(holder, 1);
    const began = performance.now();
    let asked = 0;
    const onAsked = () => {
      asked += 1;
    };
    const waiting = watch({ hubId: other, db: counting(onAsked) });
    await until("the other hub asks", () => (asked > 0 ? true : undefined));
    const siteIds = await database.database.db.select({ id: maasSites.id }).from(maasSites);
    for (const { id } of siteIds) waiting.wake(id);
    await polled(holder, 40);
    expect(polls.get(other)).toBeUndefined();
    // The hub `other` may query the database about four times a second while the hub `holder` polls MAAS. The hub `holder` polls MAAS every 50 ms, so
    // one query for each poll would be 20 queries a second.
    expect(asked).toBeLessThan(4 + (performance.now() - began) / 250);
  });

  it("query the database once a second while they watch, and MAAS only when due or woken", async () => {
    const siteId = await addSite();
    const hubId = randomUUID();
    let asked = 0;
    const onAsked = () => {
      asked += 1;
    };
    const watcher = watch({ hubId, db: counting(onAsked), pollIntervalMs: HOUR });
    const kept = (after: number) =>
      until("a poll to be kept", async () => {
        const at = (await rowOf(siteId))?.lastPollAt?.getTime() ?? 0;
        return at > after ? at : undefined;
      });
    const first = await kept(0);
    watcher.wake(siteId);
    await kept(first);
    const [began, before] = [performance.now(), asked];
    await until("three questions more", () => (asked >= before + 3 ? true : undefined));
    // Three database queries, one per second, take two seconds, or a little less if a timer fires early.
    expect(performance.now() - began).toBeGreaterThan(1_900);
    expect(polls.get(hubId)).toBe(2);
  });

  it("poll again when woken during a poll", async () => {
    const siteId = await addSite();
    const [entered, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const events = async () => {
      polls.set("woken", (polls.get("woken") ?? 0) + 1);
      entered.resolve();
      await goesOn.promise;
      return [];
    };
    const watcher = watch({ pollIntervalMs: HOUR, clientFor: async () => ({ ...idle("woken"), events }) });
    await entered.promise;
    watcher.wake(siteId);
    goesOn.resolve();
    await polled("woken", 2);
  });

  it("poll at once when woken by a call or through the database, long before the interval", async () => {
    const siteId = await addSite();
    const hubId = randomUUID();
    const watcher = watch({ hubId, pollIntervalMs: HOUR });
    await polled(hubId, 1);
    await until("the poll is kept", async () => ((await rowOf(siteId))?.lastPollAt ? true : undefined));
    const before = polls.get(hubId) ?? 0;
    watcher.wake(siteId);
    await polled(hubId, before + 1);
    const again = polls.get(hubId) ?? 0;
    await database.database.db.update(maasSiteWatches).set({ wakeRequestedAt: sql`now()` });
    await polled(hubId, again + 1);
    await until("the request is answered", async () =>
      (await rowOf(siteId))?.wakeRequestedAt === null ? true : undefined,
    );
  });

  it("continue at one site while another is down, and resume there when it is up again", async () => {
    const folder = await mkdtemp(join(tmpdir(), "muster-watch-"));
    const options = { stateFile: join(folder, "state.json"), machines: 1 };
    const first = await startMaasSimulator(options);
    const port = Number(new URL(first.url).port);
    const [up, down] = [await addSite(), await addSite()];
    const client = createMaasClient({ baseUrl: first.url, apiKey: new Secret(first.apiKey) });
    watch({
      hubId: "00000000-0000-4000-8000-000000000001",
      clientFor: async (id) => (id === down ? client : idle(up)),
    });
    await until("both are seen", async () =>
      (await rowOf(up))?.lastPollAt && (await rowOf(down))?.lastPollAt ? true : undefined,
    );
    await first.close();
    await until("three polls failed", async () => ((await rowOf(down))?.consecutiveFailures ?? 0) >= 3 || undefined);
    expect(await rowOf(down)).toMatchObject({ lastErrorCode: "unreachable" });
    const before = polls.get(up) ?? 0;
    await polled(up, before + 5);
    expect(await rowOf(up)).toMatchObject({ consecutiveFailures: 0, lastErrorCode: null });
    const second = await startMaasSimulator({ ...options, port });
    await until("it is seen again", async () => ((await rowOf(down))?.consecutiveFailures === 0 ? true : undefined));
    expect(await rowOf(down)).toMatchObject({ lastErrorCode: null });
    await Promise.all(watchers.map((watcher) => watcher.close()));
    await second.close();
    await rm(folder, { recursive: true });
  });

  it("keep their pace and their leases while another site accepts connections and never finishes an answer", async () => {
    const [up, silent, slow] = [await addSite(), await addSite(), await addSite()];
    const open = new Set<Socket>();
    const hung = createServer((socket) => {
      open.add(socket.on("error", () => undefined));
      socket.once("data", (asked) => {
        if (String(asked).includes("slow")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n[");
      });
    });
    await new Promise<void>((done) => hung.listen(0, "127.0.0.1", done));
    const origin = `http://127.0.0.1:${(hung.address() as AddressInfo).port}`;
    const timeouts = { quickMs: HOUR, slowMs: HOUR };
    const client = (path: string, signal: AbortSignal) =>
      createMaasClient({ baseUrl: `${origin}/${path}/MAAS`, apiKey: new Secret("a:b:c"), signal, timeouts });
    watch({
      hubId: "00000000-0000-4000-8000-000000000001",
      clientFor: async (id, signal) => (id === up ? idle("up") : client(id === slow ? "slow" : "silent", signal)),
    });
    await until("both polls hang", () => (open.size >= 2 ? true : undefined));
    const before = await Promise.all([up, silent, slow].map(rowOf));
    await polled("up", (polls.get("up") ?? 0) + 20);
    await until("all leases were renewed", async () => {
      const now = await Promise.all([up, silent, slow].map(rowOf));
      return now.every((row, n) => (row?.leaseUntil?.getTime() ?? 0) > (before[n]?.leaseUntil?.getTime() ?? 0))
        ? true
        : undefined;
    });
    await polled("up", (polls.get("up") ?? 0) + 20);
    const after = await Promise.all([up, silent, slow].map(rowOf));
    expect(after.map((row) => row?.fence)).toEqual([1, 1, 1]);
    expect(after[1]?.lastPollAt).toBeNull();
    expect(after[2]?.lastPollAt).toBeNull();
    for (const socket of open) socket.destroy();
    await Promise.all(watchers.map((watcher) => watcher.close()));
    await new Promise((done) => hung.close(done));
  });

  it("abort a hanging poll when they close, and record no failure for it", async () => {
    const siteId = await addSite();
    const open = new Set<Socket>();
    const silent = createServer((socket) => void open.add(socket.on("error", () => undefined)));
    await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
    const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/MAAS`;
    const timeouts = { quickMs: HOUR, slowMs: HOUR };
    const watcher = watch({
      clientFor: async (_, signal) => createMaasClient({ baseUrl, apiKey: new Secret("a:b:c"), signal, timeouts }),
    });
    await until("the poll hangs", () => (open.size > 0 ? true : undefined));
    await watcher.close();
    expect(await rowOf(siteId)).toMatchObject({ leaseOwner: null, consecutiveFailures: 0, lastErrorCode: null });
    for (const socket of open) socket.destroy();
    await new Promise((done) => silent.close(done));
  });

  it("have ended when `close` returns, even if a poll ignores the abort signal", async () => {
    await addSite();
    const [entered, goesOn, told] = [0, 1, 2].map(() => Promise.withResolvers<void>()) as [Gate, Gate, Gate];
    const watcher = watch({
      clientFor: async (_, signal) => {
        signal.addEventListener("abort", () => told.resolve());
        entered.resolve();
        await goesOn.promise;
        return idle("heedless");
      },
    });
    await entered.promise;
    let closed = false;
    const closing = watcher.close().then(() => {
      closed = true;
    });
    await told.promise;
    await database.database.db.select().from(maasSiteWatches);
    expect(closed).toBe(false);
    goesOn.resolve();
    await closing;
  });

  it("stop when the site is disabled and start when it is active again", async () => {
    const siteId = await addSite();
    const hubId = randomUUID();
    watch({ hubId });
    await polled(hubId, 1);
    await database.database.db.update(maasSites).set({ status: "disabled" });
    await until("the lease is given up", async () => ((await rowOf(siteId))?.leaseOwner === null ? true : undefined));
    const before = polls.get(hubId) ?? 0;
    await database.database.db.update(maasSites).set({ status: "active" });
    await polled(hubId, before + 1);
  });
});
