import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync, renameSync, writeSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { and, count, eq, gt, lt, sql } from "../../../hub/db/orm.ts";
import { conditionHolds, readConditions } from "../../../hub/db/queries/node-conditions.ts";
import {
  agentSessions,
  conditionWatch,
  domainEvents,
  nodeConditions,
  nodeEvents,
  nodes,
} from "../../../hub/db/schema/index.ts";
import { sweepConditions } from "../../../hub/node/condition-sweep.ts";
import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import type { NodeId } from "../../../shared/ids.ts";
import type { ReportedCondition } from "../../../shared/readiness.ts";
import { AgentHosts, hubOf, prepareHost } from "../../support/agent-hosts.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import type { SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

const LIFE = CONDITION_TYPES["agent.healthy"].lifeSeconds;

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

const { connect } = keptAgents(() => rig);
async function say(agent: SocketAgent, type: string, more: Partial<ReportedCondition> = {}): Promise<void> {
  const condition = {
    type,
    status: "True",
    reason: "Fine",
    message: "m",
    observed_at: new Date().toISOString(),
  } as const;
  const signal = { signal_id: randomUUID(), generation: 1, boot_id: "boot-1", conditions: [{ ...condition, ...more }] };
  agent.send({ type: "readiness", signal });
  await until("the signal is acknowledged", () =>
    agent.frames.some((frame) => frame.type === "readiness.ack" && frame.signal_id === signal.signal_id)
      ? true
      : undefined,
  );
}
/** Returns the seconds until a condition is stale, null for a condition that never becomes stale, and undefined without a condition. */
async function lifeLeft(nodeId: NodeId, type: string): Promise<number | null | undefined> {
  const [row] = await rig.db
    .select({ left: sql<number | null>`extract(epoch from ${nodeConditions.expiresAt} - now())::float8` })
    .from(nodeConditions)
    .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, type)));
  return row?.left;
}
const age = (nodeId: NodeId, seconds: number, { db } = rig) =>
  db
    .update(nodeConditions)
    .set({
      observedAt: sql`observed_at - make_interval(secs => ${seconds})`,
      expiresAt: sql`expires_at - make_interval(secs => ${seconds})`,
    })
    .where(eq(nodeConditions.nodeId, nodeId));
const now = async (nodeId: NodeId, type: string, { db } = rig) =>
  (await readConditions(db, nodeId, 1)).find((one) => one.type === type);

describe("a reported condition", () => {
  it("holds for the life of its type from its arrival, by the database's clock, and each repeat starts that anew", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    // Even if a host's clock is an hour behind, the host's conditions become stale at the usual time.
    await say(agent, "agent.healthy", { observed_at: new Date(Date.now() - 3_600_000).toISOString() });
    expect(await lifeLeft(identity.nodeId, "agent.healthy")).toBeGreaterThan(LIFE - 60);
    expect(await lifeLeft(identity.nodeId, "agent.healthy")).toBeLessThanOrEqual(LIFE);
    await age(identity.nodeId, LIFE / 2);
    await say(agent, "agent.healthy");
    expect(await lifeLeft(identity.nodeId, "agent.healthy")).toBeGreaterThan(LIFE - 60);
  });

  it("about a past event, or one that the hub observes itself, holds until it is replaced", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    for (const type of ["os.booted", "bootstrap.muster"]) await say(agent, type);
    for (const type of ["os.booted", "bootstrap.muster", "agent.connected"])
      expect(await lifeLeft(identity.nodeId, type)).toBeNull();
  });

  it("becomes stale and Unknown when nobody repeats it, until it is reported again", async () => {
    const identity = await rig.enrolled();
    const { nodeId } = identity;
    const agent = await connect(identity);
    await say(agent, "agent.healthy");
    await age(nodeId, LIFE - 60);
    expect(await now(nodeId, "agent.healthy")).toMatchObject({ status: "True", stale: false });
    expect(await conditionHolds(rig.db, nodeId, "agent.healthy", 1)).toBe(true);
    await age(nodeId, 61);
    expect(await now(nodeId, "agent.healthy")).toMatchObject({ status: "Unknown", reason: "Stale", stale: true });
    expect(await conditionHolds(rig.db, nodeId, "agent.healthy", 1)).toBe(false);
    await say(agent, "agent.healthy");
    expect(await now(nodeId, "agent.healthy")).toMatchObject({ status: "True", reason: "Fine", stale: false });
  });

  it("from a host whose clock was set back counts once the condition before it is stale", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    const hourAgo = { status: "False", observed_at: new Date(Date.now() - 3_600_000).toISOString() } as const;
    await say(agent, "agent.healthy");
    await say(agent, "agent.healthy", hourAgo);
    expect(await now(identity.nodeId, "agent.healthy")).toMatchObject({ status: "True" });
    await rig.db.update(nodeConditions).set({ expiresAt: sql`now()` }).where(eq(nodeConditions.type, "agent.healthy"));
    await say(agent, "agent.healthy", hourAgo);
    expect(await now(identity.nodeId, "agent.healthy")).toMatchObject({ status: "False", stale: false });
  });

  it.each(["agent.unheard_of", "fabric.ready", "cloud_init.done"])(
    "of type %s is not accepted from an agent",
    async (type) => {
      const identity = await rig.enrolled();
      const agent = await connect(identity);
      await say(agent, type);
      expect(await lifeLeft(identity.nodeId, type)).toBeUndefined();
    },
  );
});

describe("the sweep of stale conditions", () => {
  const GRACE_MS = 300_000;
  // `beforeEach` deletes all conditions, because each test counts only the conditions of its own nodes.
  beforeEach(() => rig.db.delete(nodeConditions));
  const sweep = () => sweepConditions(rig.inTx, GRACE_MS);
  const ago = (seconds: number) => sql`now() - make_interval(secs => ${seconds})`;
  const lookedAgo = (seconds: number) =>
    rig.db.update(conditionWatch).set({ lookedUntil: ago(seconds), lookedAt: ago(seconds) });
  const told = (nodeId: NodeId) =>
    rig.db
      .select({ subject: domainEvents.subject, data: domainEvents.data })
      .from(domainEvents)
      .where(and(eq(domainEvents.type, "node.condition.stale"), eq(domainEvents.subject, `nodes/${nodeId}`)));
  const history = (nodeId: NodeId) =>
    rig.db
      .select()
      .from(nodeEvents)
      .where(and(eq(nodeEvents.nodeId, nodeId), eq(nodeEvents.type, "condition_stale")));
  async function healthy(): Promise<NodeId> {
    const identity = await rig.enrolled();
    await say(await connect(identity), "agent.healthy");
    return identity.nodeId;
  }

  it("wakes the workflow that waits for the node, and writes one node event and one domain event", async () => {
    const nodeId = await healthy();
    await sweep();
    const waiting = await rig.waitingWorkflow(`node:${nodeId}`);
    await age(nodeId, LIFE - 1);
    await sweep();
    expect([await waiting.isDue(), await told(nodeId)]).toEqual([false, []]);
    await lookedAgo(20);
    await age(nodeId, 2);
    expect(await sweep()).toBe(1);
    expect(await sweep()).toBe(0);
    expect(await waiting.isDue()).toBe(true);
    expect(await told(nodeId)).toMatchObject([{ data: { node_id: nodeId, condition: "agent.healthy", was: "True" } }]);
    expect(await history(nodeId)).toMatchObject([{ owner: "hub", details: { condition: "agent.healthy" } }]);
  });

  it("writes one event even if two hubs sweep at once", async () => {
    const nodeId = await healthy();
    await sweep();
    await lookedAgo(20);
    await age(nodeId, LIFE + 1);
    const counts = await Promise.all([sweep(), sweep(), sweep()]);
    expect(counts.toSorted()).toEqual([0, 0, 1]);
    expect(await told(nodeId)).toHaveLength(1);
  });

  it("gives agents a grace after a time without any hub (decision F2)", async () => {
    const [good, hung] = [await healthy(), await healthy()];
    await sweep();
    await lookedAgo(3_600);
    // The agent of the node `good` fell silent at the moment when the hubs stopped. The agent of the node `hung` fell silent long before the hubs
    // stopped.
    await age(good, LIFE + 1_800);
    await age(hung, LIFE + 7_200);
    expect(await sweep()).toBe(0);
    expect(await now(good, "agent.healthy")).toMatchObject({ status: "True", stale: false });
    expect(await lifeLeft(good, "agent.healthy")).toBeLessThanOrEqual(GRACE_MS / 1000);
    expect(await now(hung, "agent.healthy")).toMatchObject({ status: "Unknown", stale: true });
    await lookedAgo(20);
    await age(good, GRACE_MS / 1000);
    expect(await sweep()).toBe(1);
    expect(await now(good, "agent.healthy")).toMatchObject({ status: "Unknown" });
  });

  async function fleet(size: number): Promise<void> {
    await rig.db.execute(sql`
      with made as (insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode, generation)
        select gen_random_uuid(), 'fleet-' || n, 's', 8, 'r1', 'active', 'manual', 1 from generate_series(1, ${size}) n returning id)
      insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at, expires_at)
      select id, 'agent.healthy', 'True', 'Said', '', 1, 'agent', now(), now() + interval '600 seconds' from made`);
  }
  const later = (seconds: number) =>
    rig.db.update(nodeConditions).set({ expiresAt: sql`expires_at - make_interval(secs => ${seconds})` });
  /** Counts, for each transaction, the events about stale conditions whose sequence number is above `since`. */
  const writtenAtOnce = async (since: bigint): Promise<number[]> => {
    const { rows } = await rig.db.execute<{ n: number }>(
      sql`select count(*)::int as n from domain_events where seq > ${since} and type = 'node.condition.stale' group by xmin::text`,
    );
    return rows.map(({ n }) => n).toSorted((a, b) => a - b);
  };
  const newest = async (): Promise<bigint> => {
    const { rows } = await rig.db.execute<{ seq: string }>(
      sql`select coalesce(max(seq), 0)::text as seq from domain_events`,
    );
    return BigInt(rows[0]?.seq ?? 0);
  };

  it("handles a silent fleet in bounded transactions over several sweeps, with a grace after an outage", async () => {
    await sweep();
    await fleet(230);
    const atOnce = 10;
    // The call of `lookedAgo` simulates that a week passes without any hub.
    await lookedAgo(604_800);
    await later(604_800 - 300);
    const before = await newest();
    expect(await sweepConditions(rig.inTx, GRACE_MS, atOnce)).toBe(0);
    const given = await rig.db
      .select({ n: count() })
      .from(nodeConditions)
      .where(gt(nodeConditions.expiresAt, sql`now()`));
    expect(given).toEqual([{ n: 200 }]);
    expect(await sweepConditions(rig.inTx, GRACE_MS, atOnce)).toBe(0);
    const [left] = await rig.db
      .select({ n: count() })
      .from(nodeConditions)
      .where(lt(nodeConditions.expiresAt, sql`now() + interval '250 seconds'`));
    expect(left).toEqual({ n: 0 });
    // No agent has repeated its condition by the end of the grace period, although the hubs have looked for stale conditions all the time.
    await later(GRACE_MS / 1000 + 5);
    await rig.db.update(conditionWatch).set({ lookedUntil: ago(60) });
    let told = 0;
    for (let looks = 0; looks < 10 && told < 230; looks += 1) {
      const some = await sweepConditions(rig.inTx, GRACE_MS, atOnce);
      expect(some).toBeGreaterThan(0);
      told += some;
    }
    expect(told).toBe(230);
    expect(await sweepConditions(rig.inTx, GRACE_MS, atOnce)).toBe(0);
    const sizes = await writtenAtOnce(before);
    expect(sizes.length).toBeGreaterThanOrEqual(23);
    expect(sizes.at(-1)).toBeLessThanOrEqual(2 * atOnce);
  });

  it("gives no grace after a short pause, such as the restart of one of two hubs", async () => {
    const nodeId = await healthy();
    await sweep();
    await lookedAgo(20);
    await age(nodeId, LIFE + 10);
    await sweep();
    expect(await now(nodeId, "agent.healthy")).toMatchObject({ status: "Unknown" });
  });

  it("writes no event for conditions of an earlier generation or of a deleted node", async () => {
    const [reimaged, gone] = [await healthy(), await healthy()];
    await sweep();
    await lookedAgo(20);
    await rig.db.update(nodes).set({ generation: 2 }).where(eq(nodes.id, reimaged));
    await rig.db.update(nodes).set({ status: "deleted" }).where(eq(nodes.id, gone));
    for (const nodeId of [reimaged, gone]) await age(nodeId, LIFE + 1);
    expect(await sweep()).toBe(0);
  });
});

describe("an agent that hangs while its connection stays", () => {
  let beating: GatewayRig;
  beforeAll(async () => {
    beating = await GatewayRig.start({ heartbeatMinTtlMs: 2_000 });
  });
  afterAll(() => beating.stop());
  const PART = "var/lib/muster/bootstrap/50-roce-routing.status";
  const status = (exit_code: number | null) =>
    JSON.stringify({
      part: "50-roce-routing",
      owner: "muster",
      started_at: "2026-01-01T00:00:00Z",
      ended_at: exit_code === null ? null : "2026-01-01T00:00:01Z",
      exit_code,
      message: "m",
    });
  const lastSeen = async (nodeId: NodeId) =>
    (await beating.db.select().from(agentSessions).where(eq(agentSessions.nodeId, nodeId)))[0];
  const hears = (what: string, nodeId: NodeId, stale: boolean) =>
    until(what, async () => ((await now(nodeId, "agent.healthy", beating))?.stale === stale ? true : undefined));

  it("is Unknown although it is connected, and healthy again once it reports", async () => {
    const nodeId = await beating.addNode();
    const hosts = new AgentHosts();
    const host = hosts.add();
    // While a part of the first boot runs, the agent reads the host's state every two seconds.
    host.write(PART, status(null));
    prepareHost(host, hubOf(beating), { nodeId, token: await beating.issueToken(nodeId) });
    hosts.start(host);
    try {
      await hears("the agent's word on its health", nodeId, false);
      // A process that reads a named pipe without a writer hangs, like a process that reads a broken disk.
      execFileSync("mkfifo", [host.path("never")]);
      renameSync(host.path("never"), host.path(PART));
      const disk = await until("the agent to hang", () => {
        try {
          return openSync(host.path(PART), constants.O_WRONLY | constants.O_NONBLOCK);
        } catch {
          return undefined;
        }
      });
      await age(nodeId, LIFE + 1, beating);
      const before = await lastSeen(nodeId);
      await until("another heartbeat", async () =>
        (await lastSeen(nodeId))?.lastSeenAt.getTime() === before?.lastSeenAt.getTime() ? undefined : true,
      );
      expect(await lastSeen(nodeId)).toMatchObject({ state: "open" });
      expect(await now(nodeId, "agent.connected", beating)).toMatchObject({ status: "True", stale: false });
      expect(await now(nodeId, "agent.healthy", beating)).toMatchObject({ status: "Unknown", reason: "Stale" });
      host.write(PART, status(0));
      writeSync(disk, status(0));
      closeSync(disk);
      await hears("the agent to speak again", nodeId, false);
    } finally {
      await hosts.end();
    }
  });
});
