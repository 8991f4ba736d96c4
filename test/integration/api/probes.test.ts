/** The results of probes of hosts: as conditions of nodes, by several hubs, and over the API. hub/node/probes/probe-host.test.ts has the probes themselves. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { claimProbes } from "../../../hub/db/queries/node-probes.ts";
import { externalAttempts, maasSiteProfiles, nodeConditions, nodeProbes, nodes } from "../../../hub/db/schema/index.ts";
import { probeDelaySeconds, probesMade } from "../../../hub/metrics/counted/probes.ts";
import { planProbes } from "../../../hub/node/probes/plan-probes.ts";
import { HUB_NETWORK, type ProbeNetwork } from "../../../hub/node/probes/probe-address.ts";
import { probeHost } from "../../../hub/node/probes/probe-host.ts";
import type { ProbeResult } from "../../../hub/node/probes/probe-verdict.ts";
import { startProber } from "../../../hub/node/probes/prober.ts";
import { type MadeProbe, recordResults } from "../../../hub/node/probes/record-results.ts";
import { NodeId, type ProfileId, SiteId } from "../../../shared/ids.ts";
import { Probe } from "../../../shared/probes.ts";
import { onboardedWith } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { type ProbedServers, startProbedServers } from "../../support/probed-servers.ts";
import { addActiveNode } from "../../support/site-nodes.ts";
import { until } from "../../support/until.ts";

const NODES = "/api/v1/admin/nodes";
const ATTEMPTS = "/api/v1/admin/external-attempts";
/** The hosts of these tests are on this machine, where no host of a fleet is. */
const HERE: ProbeNetwork = { ...HUB_NETWORK, isForbidden: () => false };
const OPEN = new AbortController().signal;

let servers: ProbedServers;
let api: ApiHarness;
let siteId: SiteId;
let skuId: string;
const profiles = () => `/api/v1/admin/maas-sites/${siteId}/profiles`;
const db = () => api.database.database.db;
const inTx = <T>(work: Parameters<typeof api.database.database.inTx<T>>[0]) => api.database.database.inTx(work);

beforeAll(async () => {
  servers = startProbedServers();
  api = await startApi();
  const seeded = await seedApi(api);
  siteId = SiteId.parse(seeded.siteId);
  skuId = seeded.skuId;
});
afterAll(async () => {
  servers?.close();
  await api?.close();
});

const SSH = { name: "ssh", kind: "ssh", interval_seconds: 60, timeout_seconds: 5 };
async function newProfile(probes: object[], groups: object[] = []): Promise<ProfileId> {
  const body = { name: `p-${randomUUID().slice(0, 8)}`, probes, readiness_policy: groups };
  const made = await api.ask("POST", profiles(), body);
  expect(made.status, JSON.stringify(made.problem)).toBe(201);
  return made.body.id;
}
async function addNode(profileId: ProfileId, host: string | null = "127.0.0.1"): Promise<NodeId> {
  const hostname = `n-${randomUUID().slice(0, 8)}`;
  return inTx(async (tx) => {
    const nodeId = await addActiveNode(tx, { siteId, hostname });
    await onboardedWith(tx, { nodeId, siteId, profileId, hostname });
    await tx.update(nodes).set({ host }).where(eq(nodes.id, nodeId));
    return nodeId;
  });
}
const nodeOf = async (id: string) => (await api.ask("GET", `${NODES}/${id}`)).body;
const conditionOf = async (id: string, type = "probe.ssh") =>
  (await nodeOf(id)).conditions.find((one: { type: string }) => one.type === type);
const makeDue = (id: NodeId) => db().update(nodeProbes).set({ nextAt: sql`now()` }).where(eq(nodeProbes.nodeId, id));
const expire = (id: NodeId) => db().execute(sql`update node_conditions set expires_at = now() where node_id = ${id}`);
/** Claims the probes of one node only, because nodes of other tests may be due too. */
async function claimOf(id: NodeId) {
  await planProbes(inTx);
  await db().update(nodeProbes).set({ nextAt: sql`now() + interval '1 day'` });
  await makeDue(id);
  return inTx((tx) => claimProbes(tx, 10));
}
const passed: ProbeResult = { kind: "passed", saw: "It answered." };
const failed: ProbeResult = { kind: "failed", reason: "Refused", saw: "It refused." };
const record = (made: MadeProbe[]) => recordResults({ inTx, log: quietLog }, made);
/** Claims the only probe of a node and records a result. */
async function result(id: NodeId, one: ProbeResult): Promise<number> {
  const claimed = await claimOf(id);
  expect(claimed).toHaveLength(1);
  return record(claimed.map((probe) => ({ claimed: probe, result: one })));
}

describe("the results of probes", () => {
  it("are a condition that changes after enough results in a row, and is stale when no hub probes", async () => {
    const id = await addNode(await newProfile([{ ...SSH, failures: 2 }]));
    await result(id, passed);
    const first = await conditionOf(id);
    expect(first).toMatchObject({ status: "True", reason: "Answered", source: "hub", class: "information" });
    expect(Date.parse(first.expires_at) - Date.parse(first.received_at)).toBe(195_000);
    await result(id, failed);
    expect(await conditionOf(id)).toMatchObject({ status: "True", reason: "Failing", changed_at: first.changed_at });
    await result(id, failed);
    expect(await conditionOf(id)).toMatchObject({ status: "False", reason: "Refused", message: "It refused." });
    await expire(id);
    expect(await conditionOf(id)).toMatchObject({ status: "Unknown", reason: "Stale" });
  });

  it("begin anew when the last one counts no more, so that a failure never makes a stale condition True", async () => {
    const id = await addNode(await newProfile([{ ...SSH, failures: 2 }]));
    await result(id, passed);
    await expire(id);
    await result(id, failed);
    expect(await conditionOf(id)).toMatchObject({ status: "Unknown", reason: "Probing" });
    await result(id, failed);
    expect(await conditionOf(id)).toMatchObject({ status: "False", reason: "Refused" });
  });

  it("begin anew at a changed address, at once in the plan", async () => {
    const id = await addNode(await newProfile([{ ...SSH, successes: 2 }]));
    await result(id, passed);
    await result(id, passed);
    expect((await conditionOf(id)).status).toBe("True");
    await db().update(nodes).set({ host: "127.0.0.2" }).where(eq(nodes.id, id));
    await makeDue(id);
    expect(
      (await inTx((tx) => claimProbes(tx, 10))).filter((one) => one.nodeId === id),
      "before the plan",
    ).toEqual([]);
    await planProbes(inTx);
    expect(await conditionOf(id)).toMatchObject({ status: "Unknown", reason: "Probing", expires_at: null });
    await result(id, passed);
    expect((await conditionOf(id)).status, "one success at the new address").toBe("Unknown");
    await result(id, passed);
    expect((await conditionOf(id)).status).toBe("True");
  });

  it("count only for the generation, the address and the claim of their probe", async () => {
    const id = await addNode(await newProfile([SSH]));
    const late = async (change: () => Promise<unknown>) => {
      const claimed = await claimOf(id);
      await change();
      return record(claimed.map((probe) => ({ claimed: probe, result: passed })));
    };
    const set = (values: object) => db().update(nodes).set(values).where(eq(nodes.id, id));
    expect(await late(() => set({ host: "127.0.0.2" })), "another address").toBe(0);
    expect(await late(() => set({ generation: sql`generation + 1` })), "another generation").toBe(0);
    expect(await late(() => claimOf(id)), "claimed again").toBe(0);
    expect(await conditionOf(id)).toBeUndefined();
    expect(await result(id, passed)).toBe(1);
  });

  it("begin anew with a changed probe, and end with the probe, the node's service and its address", async () => {
    const profileId = await newProfile([{ ...SSH, successes: 2 }]);
    const id = await addNode(profileId);
    await result(id, passed);
    expect(await conditionOf(id)).toMatchObject({ status: "Unknown", reason: "Probing" });
    await result(id, passed);
    expect((await conditionOf(id)).status).toBe("True");
    const change = (probes: object[]) =>
      db()
        .update(maasSiteProfiles)
        .set({ probes: Probe.array().parse(probes) })
        .where(eq(maasSiteProfiles.id, profileId));
    await change([{ ...SSH, successes: 2, interval_seconds: 90 }]);
    await planProbes(inTx);
    await result(id, passed);
    expect((await conditionOf(id)).status, "with another interval only").toBe("True");
    await change([{ ...SSH, successes: 2, port: 2222 }]);
    await planProbes(inTx);
    expect(await conditionOf(id)).toMatchObject({ status: "Unknown", reason: "Probing" });
    await result(id, passed);
    expect((await conditionOf(id)).status, "one success of the changed probe").toBe("Unknown");

    await db().execute(sql`update nodes set status = 'draining', operation_id = gen_random_uuid() where id = ${id}`);
    await planProbes(inTx);
    expect(await conditionOf(id)).toMatchObject({ status: "Unknown", reason: "NotProbed", expires_at: null });
    expect(await claimOf(id)).toEqual([]);
    await db().execute(sql`update nodes set status = 'active' where id = ${id}`);
    await result(id, passed);
    await change([]);
    expect(await claimOf(id)).toEqual([]);
    expect(await conditionOf(id)).toBeUndefined();
  });

  it("are Unknown for a node without an address, with what to do", async () => {
    const id = await addNode(await newProfile([SSH]), null);
    const [claimed] = await claimOf(id);
    if (claimed === undefined) throw new Error("no probe is due");
    const outcome = (await probeHost(claimed, HUB_NETWORK, OPEN)) as ProbeResult;
    await record([{ claimed, result: outcome }]);
    const told = {
      status: "Unknown",
      reason: "NoAddress",
      message: expect.stringMatching(/has no address.* Let MAAS/),
    };
    expect(await conditionOf(id)).toMatchObject(told);
  });

  it("cost no other node anything if one cannot be written", async () => {
    const profileId = await newProfile([SSH]);
    const [bad, good] = [await addNode(profileId), await addNode(profileId)];
    const made: MadeProbe[] = [];
    for (const id of [bad, good]) {
      const saw = id === bad ? "no text of PostgreSQL: \0" : "It answered.";
      for (const claimed of await claimOf(id)) made.push({ claimed, result: { kind: "passed", saw } as const });
    }
    expect(await record(made)).toBe(1);
    expect(await conditionOf(bad)).toBeUndefined();
    expect((await conditionOf(good)).status).toBe("True");
  });

  it("are damped when the host's answers change, and not when a hub is late", async () => {
    const id = await addNode(await newProfile([{ ...SSH, successes: 2, failures: 1 }]));
    const history = async () => {
      await db().execute(sql`update node_conditions set changed_at = changed_at - interval '60 s',
        changes = array(select one - interval '60 s' from unnest(changes) with ordinality u(one, place) order by place)
        where node_id = ${id}`);
      const [row] = await db().select().from(nodeConditions).where(eq(nodeConditions.nodeId, id));
      return row;
    };
    for (let late = 0; late < 4; late += 1) {
      await expire(id);
      for (const one of [passed, passed]) await result(id, one);
      expect(await history()).toMatchObject({ status: "True", changes: [], flappingSince: null });
    }
    for (const one of [failed, passed, passed, failed, passed]) {
      await result(id, one);
      expect(await history()).toMatchObject({ flappingSince: null });
    }
    await result(id, passed);
    expect(await history()).toMatchObject({ status: "True", flappingSince: expect.any(Date) });
  });

  it("come soon although the database's clock was set back", async () => {
    const id = await addNode(await newProfile([SSH]));
    await claimOf(id);
    await db().update(nodeProbes).set({ nextAt: sql`now() + interval '1 day'` });
    await planProbes(inTx);
    const next = sql<boolean>`${nodeProbes.nextAt} <= now() + interval '60 s'`;
    expect(await db().select({ next }).from(nodeProbes).where(eq(nodeProbes.nodeId, id))).toEqual([{ next: true }]);
  });

  it("survive a hub that dies after its claim: the next probe comes after an interval, whatever hub makes it", async () => {
    const id = await addNode(await newProfile([SSH]));
    expect(await claimOf(id)).toHaveLength(1);
    const [row] = await db()
      .select({ in: sql<number>`extract(epoch from ${nodeProbes.nextAt} - now())::float8` })
      .from(nodeProbes)
      .where(eq(nodeProbes.nodeId, id));
    expect(row?.in).toBeGreaterThan(50);
    expect(row?.in).toBeLessThan(67);
    await makeDue(id);
    const two = await Promise.all([1, 2].map(() => inTx((tx) => claimProbes(tx, 10))));
    expect(two.flat()).toHaveLength(1);
  });
});

describe("a host of an external system without an agent", () => {
  it("comes into service by a probe of SSH alone, by whichever of two hubs, and not before its completion", async () => {
    let connections = 0;
    const port = await servers.tcp((socket) => {
      connections += 1;
      socket.write("SSH-2.0-test\r\n");
    });
    const profile_id = await newProfile([{ ...SSH, port }], [{ all: [{ type: "probe.ssh" }] }]);
    const host = {
      hostname: "byo-1",
      site_id: siteId,
      sku_id: skuId,
      region_code: "r1",
      provisioner: "foreman",
      agent: "none",
    };
    const { attempt } = (await api.ask("POST", ATTEMPTS, { ...host, profile_id })).body;
    const id = NodeId.parse(attempt.node_id);
    await db().update(nodes).set({ host: "127.0.0.1" }).where(eq(nodes.id, id));
    expect(await claimOf(id), "the former system may answer").toEqual([]);
    const complete = { facts: { host: "127.0.0.1" } };
    expect((await api.ask("POST", `${ATTEMPTS}/${attempt.id}/complete`, complete)).status).toBe(202);
    const before = (await nodeOf(id)).readiness;
    expect(before.lacking).toMatchObject([
      { type: "probe.ssh", kind: "missing", next_action: expect.stringMatching(/profile lists/) },
    ]);

    // The node cannot come into service now, which costs it no result. Later a host that fails brings it no nearer.
    await db().execute(
      sql`create function refuse() returns trigger language plpgsql as 'begin raise exception ''refused''; end'`,
    );
    await db().execute(
      sql`create trigger refuse before update on nodes for each row when (new.status = 'active') execute function refuse()`,
    );
    expect(await result(id, passed)).toBe(1);
    expect(await nodeOf(id)).toMatchObject({ status: "enrolling", readiness: { ready: true } });
    await db().execute(sql`drop function refuse cascade`);
    await result(id, failed);
    expect(await conditionOf(id)).toMatchObject({ status: "True", reason: "Failing" });
    expect((await nodeOf(id)).status, "after a failure").toBe("enrolling");

    await planProbes(inTx);
    await makeDue(id);
    const counted = async () => {
      const { values } = await probesMade.metric.get();
      const { values: delays } = await probeDelaySeconds.metric.get();
      const late = delays.find((one) => "metricName" in one && String(one.metricName).endsWith("_count"));
      return [
        values.find(({ labels }) => labels["kind"] === "ssh" && labels["outcome"] === "passed")?.value,
        late?.value,
      ];
    };
    const [made = 0, begun = 0] = await counted();
    const hubs = [1, 2].map(() => startProber({ inTx, log: quietLog, network: HERE }));
    const active = await until("the node is active", async () => {
      const node = await nodeOf(id);
      return node.status === "active" ? node : undefined;
    });
    await Promise.all(hubs.map((hub) => hub.close()));
    expect(active.readiness).toMatchObject({ ready: true, lacking: [] });
    expect(connections, "connections by both hubs").toBe(1);
    const [madeNow, begunNow = 0] = await counted();
    expect(madeNow).toBe(made + 1);
    // On a loaded computer a probe of another host of this file may have become due too.
    expect(begunNow).toBeGreaterThan(begun);
    const [row] = await db().select().from(externalAttempts).where(eq(externalAttempts.nodeId, id));
    expect(row?.state).toBe("completed");

    await result(id, failed);
    await result(id, failed);
    await result(id, failed);
    expect((await nodeOf(id)).readiness.lacking).toMatchObject([
      { type: "probe.ssh", kind: "wrong_status", reason: "Refused" },
    ]);
  });
});

describe("the API", () => {
  it("stores the probes of a profile with their defaults, and bounds them", async () => {
    const { body } = await api.ask("GET", `${profiles()}/${await newProfile([{ name: "web", kind: "https" }])}`);
    const common = { interval_seconds: 60, timeout_seconds: 5, successes: 1, failures: 3 };
    const http = { path: "/", expected_status: 200, host_header: null, verify_tls: true };
    expect(body.probes).toEqual([{ name: "web", kind: "https", port: 443, ...common, ...http }]);
    for (const [probes, pointer] of [
      [Array.from({ length: 9 }, (_, n) => ({ ...SSH, name: `p${n}` })), "/probes"],
      [[SSH, { ...SSH, kind: "tcp", port: 1 }], "/probes"],
      [[{ ...SSH, interval_seconds: 9 }], "/probes/0/interval_seconds"],
      [[{ ...SSH, timeout_seconds: 11 }], "/probes/0/timeout_seconds"],
      [[{ ...SSH, name: "Ssh" }], "/probes/0/name"],
      [[{ ...SSH, kind: "icmp" }], "/probes/0/kind"],
      [[{ ...SSH, host: "10.0.0.1" }], "/probes/0"],
      [[{ name: "t", kind: "tcp" }], "/probes/0/port"],
      [[{ name: "h", kind: "http", path: "//\r\nx" }], "/probes/0/path"],
      [[{ name: "h", kind: "http", host_header: "a b" }], "/probes/0/host_header"],
    ]) {
      const refused = await api.ask("POST", profiles(), { name: "refused", probes });
      expect(refused.problem.errors?.[0]?.pointer, JSON.stringify(probes)).toContain(pointer);
    }
  });

  it("lets no readiness policy ask that a probe fails", async () => {
    const groups = [{ all: [{ type: "probe.ssh", status: "False" }] }];
    const refused = await api.ask("POST", profiles(), { name: "refused", readiness_policy: groups });
    expect(refused.problem.errors).toMatchObject([{ pointer: "/readiness_policy/0/all/0/status" }]);
  });

  it("lets nobody else say what a probe saw, and keeps the results when reports are cleared", async () => {
    const id = await addNode(await newProfile([SSH]));
    await result(id, passed);
    const said = { status: "True", reason: "Said", message: "", observed_at: "2026-01-01T00:00:00Z" };
    const signal = { signal_id: randomUUID(), generation: 0, conditions: [{ type: "probe.ssh", ...said }] };
    expect((await api.ask("POST", `${NODES}/${id}/readiness-signals`, signal)).status).toBe(400);
    const own = { ...signal, conditions: [{ type: "fabric.ready", ...said }] };
    expect((await api.ask("POST", `${NODES}/${id}/readiness-signals`, own)).status).toBe(202);
    expect((await api.ask("POST", `${NODES}/${id}/clear-reports`, { reason: "a test" })).body).toMatchObject({
      conditions: 1,
    });
    expect((await conditionOf(id)).status).toBe("True");
  });
});
