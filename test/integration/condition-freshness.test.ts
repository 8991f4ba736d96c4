import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../hub/db/orm.ts";
import { conditionHolds, readConditions } from "../../hub/db/queries/node-conditions.ts";
import { nodeConditions } from "../../hub/db/schema/index.ts";
import { CONDITION_TYPES } from "../../shared/condition-types.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { ReportedCondition } from "../../shared/readiness.ts";
import { GatewayRig, type Identity } from "../support/gateway-rig.ts";
import { SocketAgent } from "../support/socket-agent.ts";
import { until } from "../support/until.ts";

const LIFE = CONDITION_TYPES["agent.healthy"].lifeSeconds;

let rig: GatewayRig;
const agents: SocketAgent[] = [];
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => {
  for (const agent of agents.splice(0)) agent.cut();
});
afterAll(() => rig.stop());

async function connect(identity: Identity): Promise<SocketAgent> {
  const agent = await SocketAgent.connect(rig, identity);
  agents.push(agent);
  return agent;
}
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
/** Seconds until the condition is stale, by the database's clock; null: never, undefined: nobody said it. */
async function lifeLeft(nodeId: NodeId, type: string): Promise<number | null | undefined> {
  const [row] = await rig.db
    .select({ left: sql<number | null>`extract(epoch from ${nodeConditions.expiresAt} - now())::float8` })
    .from(nodeConditions)
    .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, type)));
  return row?.left;
}
/** As if all that was said of the node had been said so many seconds earlier. */
const age = (nodeId: NodeId, seconds: number) =>
  rig.db
    .update(nodeConditions)
    .set({
      observedAt: sql`observed_at - make_interval(secs => ${seconds})`,
      expiresAt: sql`expires_at - make_interval(secs => ${seconds})`,
    })
    .where(eq(nodeConditions.nodeId, nodeId));
const now = async (nodeId: NodeId, type: string) =>
  (await readConditions(rig.db, nodeId, 1)).find((one) => one.type === type);

describe("a word on a condition", () => {
  it("holds for its type's life from when it came, by the database's clock, and each repeat begins that anew", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    // A host whose clock is an hour behind is no staler for it.
    await say(agent, "agent.healthy", { observed_at: new Date(Date.now() - 3_600_000).toISOString() });
    expect(await lifeLeft(identity.nodeId, "agent.healthy")).toBeGreaterThan(LIFE - 60);
    expect(await lifeLeft(identity.nodeId, "agent.healthy")).toBeLessThanOrEqual(LIFE);
    await age(identity.nodeId, LIFE / 2);
    await say(agent, "agent.healthy");
    expect(await lifeLeft(identity.nodeId, "agent.healthy")).toBeGreaterThan(LIFE - 60);
  });

  it("on what happened, or on what the hub watches itself, holds until another replaces it", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    for (const type of ["os.booted", "bootstrap.muster"]) await say(agent, type);
    for (const type of ["os.booted", "bootstrap.muster", "agent.connected"])
      expect(await lifeLeft(identity.nodeId, type)).toBeNull();
  });

  it("that nobody repeats is stale: unknown, whatever was said, until it is said again", async () => {
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

  it("of a host whose clock was set back counts again at the latest once the one before it is stale", async () => {
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

  it.each(["agent.unheard_of", "fabric.ready", "cloud_init.done"])("on %s is not an agent's to say", async (type) => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await say(agent, type);
    expect(await lifeLeft(identity.nodeId, type)).toBeUndefined();
  });
});
