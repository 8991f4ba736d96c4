import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readKnownRegion } from "../../../hub/db/queries/known-region.ts";
import { bindNodeToMachine, unbindNode } from "../../../hub/db/queries/node-machines.ts";
import { maasMachines, maasSites, maasSiteWatches } from "../../../hub/db/schema/index.ts";
import { createMaasClient } from "../../../hub/maas/client.ts";
import { SiteClients } from "../../../hub/maas/site-clients.ts";
import { createNode } from "../../../hub/node/create-node.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { probeSite, siteClient } from "../../../hub/startup/site-services.ts";
import { startWatcher, type Watcher } from "../../../hub/watcher/watcher.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { type ApiHarness, SITE_BODY, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const SITES = "/api/v1/admin/maas-sites";
const HOSTS = 3;

/** An operator can move a site with active nodes to another address only if the hub finds the same MAAS region there (lifecycle 3.5). */
describe("a site that follows its region to another address", () => {
  let api: ApiHarness;
  let maas: MaasSimulator;
  let watcher: Watcher;
  let siteId: SiteId;
  const systemIds: string[] = [];
  /** The simulated probe calls `meanwhile` while the hub compares the MAAS regions at the old and the new address. */
  let meanwhile = async (): Promise<void> => undefined;
  beforeAll(async () => {
    api = await startApi({
      probe: async (asked) => {
        await meanwhile();
        return probeSite(asked);
      },
    });
    maas = await startMaasSimulator({ machines: HOSTS });
    const site = await api.ask("POST", SITES, { ...SITE_BODY, name: "moves", api_base_url: maas.url });
    siteId = SiteId.parse(site.body.id);
    await api.ask("POST", `${SITES}/${siteId}/credentials`, { maas_token: maas.apiKey });
    const client = createMaasClient({ baseUrl: maas.url, apiKey: new Secret(maas.apiKey) });
    for (let n = 1; n <= HOSTS; n += 1) {
      const hostname = `host-${n}`;
      const power = { address: bmcAddress(n), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
      const { systemId } = await client.createMachine({ hostname, architecture: "amd64/generic", power });
      systemIds.push(systemId);
      await bind(hostname, systemId, bmcAddress(n));
      maas.sim.region.event(maas.sim.region.machine(systemId), "DEBUG", "Node changed", "by somebody");
    }
    const { db, inTx } = api.database.database;
    const clientFor = siteClient(db, api.secrets, new SiteClients());
    const rest = { hubId: randomUUID(), log: quietLog, pollIntervalMs: 30, sweepIntervalMs: 3_600_000 };
    watcher = startWatcher({ db, inTx, clientFor, ...rest });
  });
  afterAll(async () => {
    await watcher?.close();
    await maas?.close();
    await api?.close();
  });
  beforeEach(async () => {
    meanwhile = async () => undefined;
    const { db } = api.database.database;
    await db.update(maasSites).set({ apiBaseUrl: maas.url }).where(eq(maasSites.id, siteId));
    await lookedAt();
  });

  const db = () => api.database.database.db;
  async function bind(hostname: string, maasSystemId: string, ipmiIp: string): Promise<NodeId> {
    const id = NodeId.parse(randomUUID());
    const about = { sku: "sku", gpusTotal: 8, regionCode: "r1", onboardingMode: "maas", owner: "onboarding" } as const;
    await api.database.database.inTx(async (tx) => {
      await createNode(tx, { id, hostname, siteId, ...about });
      await bindNodeToMachine(tx, { nodeId: id, siteId, maasSystemId, ipmiIp });
    });
    return id;
  }
  const watch = async () => {
    const [row] = await db().select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, siteId));
    return row;
  };
  const lookedAt = async () => {
    const newest = Math.max(...maas.sim.region.state.events.map(({ id }) => id));
    await until("all events to be seen", async () => ((await watch())?.eventCursor === newest ? true : undefined));
  };
  const otherName = () => maas.url.replace("127.0.0.1", "localhost");
  const move = (body: Record<string, unknown> = {}) =>
    api.ask("POST", `${SITES}/${siteId}/move`, {
      api_base_url: otherName(),
      maas_token: maas.apiKey,
      reason: "it has a name now",
      ...body,
    });
  const addressOf = async () => (await api.ask("GET", `${SITES}/${siteId}`)).body.api_base_url;

  it("keeps its nodes, token, event cursor and machines, and is watched at the new address", async () => {
    const before = await watch();
    // A poll without an event cursor would start at the newest event and skip all earlier events.
    const { pool } = api.database.database;
    await pool.query("alter table maas_site_watches add constraint kept check (event_cursor is not null) not valid");
    const moved = await move();
    await pool.query("alter table maas_site_watches drop constraint kept");
    expect(moved.body).toMatchObject({ api_base_url: otherName(), credentials: { maas_token: true } });
    expect(await api.secrets.read(SECRET_PATHS.maasToken(siteId))).toEqual({ token: maas.apiKey });
    const since = new Date();
    const after = await until("the region to be swept at its other address", async () => {
      const row = await watch();
      return row !== undefined && row.lastPollAt !== null && row.lastPollAt > since && row.sweepRequestedAt === null
        ? row
        : undefined;
    });
    expect(after).toMatchObject({ fence: before?.fence, eventCursor: before?.eventCursor, consecutiveFailures: 0 });
    const machines = await db().select().from(maasMachines).where(eq(maasMachines.siteId, siteId));
    expect(machines.map(({ systemId, absent }) => [systemId, absent]).sort()).toEqual(
      systemIds.map((systemId) => [systemId, false]).sort(),
    );
    const { rows } = await api.database.database.pool.query(
      "select target, reason, details from audit_logs where action = 'moveMaasSite'",
    );
    expect(rows).toEqual([
      {
        target: `maas-sites/${siteId}`,
        reason: "it has a name now",
        details: { from: maas.url, to: otherName() },
      },
    ]);
  });

  it("is refused if the caller does not know the site's token, which is then sent nowhere", async () => {
    let heard = 0;
    const listener = createServer((_request, response) => {
      heard += 1;
      response.writeHead(503).end();
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const api_base_url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/MAAS`;
    for (const maas_token of ["a:b:c", maas.apiKey.replace(/[^:]*$/, (secret) => "x".repeat(secret.length))]) {
      const { problem } = await move({ api_base_url, maas_token });
      expect(problem).toMatchObject({ status: 409, code: "conflict", errors: [{ pointer: "/maas_token" }] });
    }
    expect(heard).toBe(0);
    expect((await move({ api_base_url })).problem.code).toBe("site_unusable");
    expect(heard).toBeGreaterThan(0);
    await new Promise((resolve) => listener.close(resolve));
  });

  it("is refused if the site's address or token changed during the comparison", async () => {
    const elsewhere = `${maas.url}/`;
    const change = (of: string, apiBaseUrl: string) => async () => {
      const paths = of === "token" ? { apiTokenVaultPath: SECRET_PATHS.maasToken(siteId) } : {};
      await db()
        .update(maasSites)
        .set({ ...paths, apiBaseUrl, updatedAt: sql`now()` })
        .where(eq(maasSites.id, siteId));
    };
    for (const [of, address] of [
      ["address", elsewhere],
      ["token", maas.url],
    ] as const) {
      await db().update(maasSites).set({ apiBaseUrl: maas.url }).where(eq(maasSites.id, siteId));
      meanwhile = change(of, address);
      expect((await move()).problem).toMatchObject({ status: 409, detail: expect.stringContaining("were changed") });
      expect(await addressOf()).toBe(address);
    }
  });

  it("is refused if nobody answers, or MAAS refuses the token", async () => {
    expect((await move({ api_base_url: "http://127.0.0.1:1/MAAS" })).problem.code).toBe("site_unusable");
    maas.sim.faults.add({ match: { op: "whoami" }, kind: "status", code: 401, body: "no", times: 1 });
    expect((await move()).problem.code).toBe("site_unusable");
    // The simulated fault hits the second request `power_parameters`, which the comparison of the two regions makes.
    maas.sim.faults.add({
      match: { op: "power_parameters" },
      kind: "status",
      code: 503,
      body: "busy",
      times: 1,
      after: 1,
    });
    expect((await move()).problem).toMatchObject({
      code: "conflict",
      detail: expect.stringContaining("not be compared"),
    });
    maas.sim.faults.clear();
    expect(await addressOf()).toBe(maas.url);
  });

  it("is refused if the region has other events, lacks a machine, or has a machine with another BMC", async () => {
    const other = await startMaasSimulator({ machines: HOSTS });
    try {
      Object.assign(other.sim.region.state, JSON.parse(JSON.stringify(maas.sim.region.state)));
      const there = { api_base_url: other.url };
      const refused = async (...words: string[]) => {
        const { problem } = await move(there);
        expect(problem).toMatchObject({ status: 409, code: "conflict", errors: [{ pointer: "/api_base_url" }] });
        for (const word of words) expect(problem.detail).toContain(word);
        expect(await addressOf()).toBe(maas.url);
      };
      // The MAAS region at the new address is a copy from before the last event that the hub saw.
      const events = other.sim.region.state.events;
      const last = events.at(-1);
      if (last === undefined) throw new Error("the region has no event");
      other.sim.region.state.events = events.slice(0, -1);
      await refused(`event ${last.id}`);
      other.sim.region.state.events = [...events.slice(0, -1), { ...last, type: "something else" }];
      await refused(`event ${last.id}`);
      other.sim.region.state.events = events;
      const [machine] = other.sim.region.state.machines;
      if (machine === undefined) throw new Error("the region has no machine");
      machine.powerParameters["power_address"] = "10.9.9.9";
      await refused(`machine ${machine.systemId} has another BMC than ${bmcAddress(1)}`);
      other.sim.region.state.machines = other.sim.region.state.machines.slice(1);
      await refused(`machine ${machine.systemId} does not exist there`);
      other.sim.region.state.machines = [];
      // When MAAS deletes a machine, it also deletes the machine's events.
      const bound = [await bind("more-1", "more-1", "10.0.1.1")];
      await refused("does not exist there. If it is another region");
      bound.push(await bind("more-2", "more-2", "10.0.1.2"));
      await refused("does not exist there; and 1 more. If it is another region");
      await api.database.database.inTx(async (tx) => {
        for (const nodeId of bound) await unbindNode(tx, nodeId);
      });
    } finally {
      await other.close();
    }
  });

  it("is compared by the machines of its nodes and unfinished work, without those known to be gone", async () => {
    const known = async () => (await readKnownRegion(db(), siteId)).machines.map(({ systemId }) => systemId);
    expect(await known()).toEqual([...systemIds].sort());
    const gone = await bind("gone", "gone11", "10.0.0.9");
    expect(await known()).toContain("gone11");
    await db().insert(maasMachines).values({
      siteId,
      systemId: "gone11",
      hostname: "gone",
      status: 6,
      statusName: "Deployed",
      statusMessage: "",
      errorDescription: "",
      powerState: "on",
      locked: false,
      ipAddresses: [],
      absent: true,
    });
    expect(await known()).toEqual([...systemIds].sort());
    await api.database.database.inTx((tx) => unbindNode(tx, gone));
  });

  it("continues in the events where it was, so no event is skipped", async () => {
    await watcher.close();
    const before = await watch();
    expect(before?.eventCursor).toEqual(expect.any(Number));
    expect((await move()).status).toBe(200);
    const { eventCursor, eventMark, wakeRequestedAt, sweepRequestedAt } = (await watch()) ?? {};
    expect({ eventCursor, eventMark }).toEqual({ eventCursor: before?.eventCursor, eventMark: before?.eventMark });
    expect([wakeRequestedAt, sweepRequestedAt]).toEqual([expect.any(Date), expect.any(Date)]);
  });

  it("is refused while no event of the region is known", async () => {
    await db().update(maasSiteWatches).set({ eventMark: null }).where(eq(maasSiteWatches.siteId, siteId));
    expect((await move()).problem).toMatchObject({ code: "conflict", errors: [{ pointer: "/api_base_url" }] });
  });
});
