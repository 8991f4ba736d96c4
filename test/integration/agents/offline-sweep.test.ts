import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { recordContacts } from "../../../hub/db/queries/agent-sessions.ts";
import { listBreakers } from "../../../hub/db/queries/reconciler-breakers.ts";
import { agentSessions, nodeEvents, nodes } from "../../../hub/db/schema/index.ts";
import { startOfflineSweep, sweepOffline } from "../../../hub/node/offline-sweep.ts";
import { offlineBreaker } from "../../../hub/reconciler/offline-breaker.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { hostRows } from "../../support/host-rows.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { quietLog } from "../../support/log.ts";
import { insertSite } from "../../support/site.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

const { connect } = keptAgents(() => rig);
const { sessionOf, statusOf, conditionOf, sessionState } = hostRows(() => rig.db);
const eventsOf = async (nodeId: NodeId, type: (typeof nodeEvents.$inferSelect)["type"]) =>
  rig.db
    .select()
    .from(nodeEvents)
    .where(and(eq(nodeEvents.nodeId, nodeId), eq(nodeEvents.type, type)));

const holdBack = offlineBreaker;
describe("a silent node", () => {
  const silence = (nodeId: NodeId, agoMs: number) =>
    rig.db
      .update(agentSessions)
      .set({ lastSeenAt: new Date(Date.now() - agoMs), heartbeatTtlMs: 10_000 })
      .where(eq(agentSessions.nodeId, nodeId));
  const sweep = (upForMs = 600_000) =>
    sweepOffline({ inTx: rig.inTx, upForMs, silenceMs: 30_000, holdBack, afterOutage: false });
  const lost = async (status: "active" | "enrolling" = "active") => {
    const identity = await rig.enrolled(status);
    await (await connect(identity)).close();
    await sessionState(identity.nodeId, "closed");
    return identity;
  };

  it("becomes offline after its time to live plus the allowance, and active at the next hello", async () => {
    const identity = await lost();
    await silence(identity.nodeId, 35_000);
    await sweep();
    expect(await statusOf(identity.nodeId)).toBe("active");
    await silence(identity.nodeId, 45_000);
    expect(await sweep()).toMatchObject({ offline: 1 });
    expect(await statusOf(identity.nodeId)).toBe("offline");
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({
      status: "Unknown",
      reason: "Silent",
    });
    expect(await sweep()).toMatchObject({ offline: 0 });
    await connect(identity);
    expect(await statusOf(identity.nodeId)).toBe("active");
    const moves = await eventsOf(identity.nodeId, "status_changed");
    expect(moves.map((move) => `${move.fromStatus} -> ${move.toStatus} by ${move.owner}`)).toEqual([
      "active -> offline by heartbeat",
      "offline -> active by heartbeat",
    ]);
  });

  it("is not offline before the hub has been up for twice the node's time to live (decision F2)", async () => {
    const identity = await lost();
    await silence(identity.nodeId, 3_600_000);
    await sweep(19_000);
    expect(await statusOf(identity.nodeId)).toBe("active");
    await sweep(20_000);
    expect(await statusOf(identity.nodeId)).toBe("offline");
  });

  it("gets the open session of its dead hub closed, and keeps its status unless it is in service", async () => {
    const identity = await rig.enrolled("enrolling");
    // The agent sends only its hello, because any later frame would end the silence that the test simulates.
    const agent = await connect(identity);
    await silence(identity.nodeId, 3_600_000);
    await sweep();
    expect(await sessionOf(identity.nodeId)).toMatchObject({ state: "closed", closeReason: "silent" });
    expect(await statusOf(identity.nodeId)).toBe("enrolling");
    agent.send({ type: "heartbeat", seq: 1 });
    expect(await sessionState(identity.nodeId, "open")).toMatchObject({ closeReason: null });
  });

  it("is active again when its open session is heard from, without a new hello", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await silence(identity.nodeId, 3_600_000);
    await sweep();
    expect(await statusOf(identity.nodeId)).toBe("offline");
    agent.send({ type: "heartbeat", seq: 1 });
    await sessionState(identity.nodeId, "open");
    expect(await sweep()).toMatchObject({ returned: 1 });
    expect(await statusOf(identity.nodeId)).toBe("active");
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "True" });
  });

  it("becomes offline by the running sweep once the hub's grace is over", async () => {
    const identity = await lost();
    await silence(identity.nodeId, 3_600_000);
    await rig.db.update(agentSessions).set({ heartbeatTtlMs: 50 }).where(eq(agentSessions.nodeId, identity.nodeId));
    const running = startOfflineSweep({ inTx: rig.inTx, log: quietLog, graceMs: 200, everyMs: 20, holdBack });
    await until("the node is offline", async () =>
      (await statusOf(identity.nodeId)) === "offline" ? true : undefined,
    );
    await running.close();
  });

  it("does not become offline by the sweep of a hub that has just started", async () => {
    const identity = await lost();
    await silence(identity.nodeId, 3_600_000);
    let sweeps = 0;
    const counted: typeof rig.inTx = async (fn, options) => rig.inTx(fn, options).finally(() => sweeps++);
    const running = startOfflineSweep({ inTx: counted, log: quietLog, graceMs: 3_600_000, everyMs: 20, holdBack });
    await until("it has swept a few times", () => (sweeps > 5 ? true : undefined));
    await running.close();
    expect(await statusOf(identity.nodeId)).toBe("active");
  });
});

describe("a fleet that falls silent", () => {
  const NODES = 300;
  const TTL_MS = 120_000;
  const SITE = "00000000-0000-4000-8000-000000000001" as SiteId;
  const idOf = (n: number): NodeId => `00000000-0000-4000-8000-${n.toString().padStart(12, "0")}` as NodeId;
  /** Creates nodes whose agents sent their last frame an hour ago. */
  const seed = async (siteId: SiteId | null): Promise<void> => {
    await rig.db.execute(sql`truncate nodes, agent_sessions cascade`);
    await rig.db.execute(sql`
      insert into nodes (id, hostname, site_id, status, sku, gpus_total, region_code, onboarding_mode)
      select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'h' || n, ${siteId}::uuid, 'active', 's', 8, 'r1', 'maas'
      from generate_series(1, ${NODES}::int) n`);
    await rig.db.execute(sql`
      insert into agent_sessions (node_id, session_epoch, hub_id, channel, state, boot_id, agent_version, protocol_version, generation,
        heartbeat_ttl_ms, last_seen_at)
      select id, 1, gen_random_uuid(), 'websocket', 'open', 'b', '1', 1, generation, ${TTL_MS}::int, now() - interval '1 hour' from nodes`);
  };
  const count = async (status: "active" | "offline") => rig.db.$count(nodes, eq(nodes.status, status));
  const sweep = (inTx: typeof rig.inTx, afterOutage = false) =>
    sweepOffline({ inTx, upForMs: 600_000, silenceMs: 30_000, holdBack, afterOutage });
  /** Stores the last contacts of agents as the hub does, except that a long wait for a locked row is an error. */
  const contact = (...nodeIds: NodeId[]) =>
    rig.inTx(async (tx) => {
      await tx.execute(sql`set local lock_timeout = '2s'`);
      await recordContacts(
        tx,
        nodeIds.map((nodeId) => ({ nodeId, epoch: 1, heartbeatTtlMs: TTL_MS })),
      );
    });

  it("becomes offline in batches, and the contact of a returning node is stored between them", async () => {
    await seed(null);
    const offlineAfter: number[] = [];
    const watched: typeof rig.inTx = async (fn, options) => {
      const result = await rig.inTx(async (tx) => {
        const done = await fn(tx);
        const moved = await tx.$count(nodes, eq(nodes.status, "offline"));
        if (moved > 0 && offlineAfter.every((before) => before === 0)) await contact(idOf(NODES));
        return done;
      }, options);
      offlineAfter.push(await count("offline"));
      return result;
    };
    expect(await sweep(watched)).toMatchObject({ offline: NODES - 1 });
    expect(new Set(offlineAfter).size).toBeGreaterThanOrEqual(3);
    expect(await statusOf(idOf(NODES))).toBe("active");
    expect(await count("offline")).toBe(NODES - 1);
  });

  it("is active again when its agents report", async () => {
    await contact(...Array.from({ length: NODES }, (_, n) => idOf(n + 1)));
    expect(await sweep(rig.inTx)).toMatchObject({ offline: 0, returned: NODES - 1 });
    expect(await count("active")).toBe(NODES);
  });

  it("is held back as a whole by the breaker after an outage of the hub", async () => {
    await insertSite(rig.db, { id: SITE });
    await seed(SITE);
    expect(await sweep(rig.inTx, true)).toEqual({ offline: 0, returned: 0 });
    expect(await count("active")).toBe(NODES);
    const [breaker] = await listBreakers(rig.db);
    expect(breaker).toMatchObject({ kind: "offline", wouldMove: NODES, inService: NODES, nodeIds: { length: 50 } });
    expect(await conditionOf(idOf(NODES), "agent.connected")).toMatchObject({ status: "Unknown", reason: "Silent" });
  });
});
