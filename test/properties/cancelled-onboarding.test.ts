import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, isNull } from "../../hub/db/orm.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { domainEvents, enrollmentTokens, nodeCertificates, nodeEvents, nodes } from "../../hub/db/schema/index.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import type { OnboardingStage } from "../../shared/workflow-status.ts";
import type { AgentMode } from "../support/decommission-world.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { until } from "../support/until.ts";
import { Driver, plainly } from "./drive.ts";
import { machineOf } from "./scenarios.ts";

/** A cancelled onboarding leaves no node without an owner, and no credential with which the agent could connect. */
let rig: OnboardingRig;
let withAgent: Driver;
let withoutAgent: Driver;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 8 });
  const kinds = workflowsOf(rig.services);
  withAgent = new Driver(rig.test, kinds, (id) => rig.playAgent(id));
  withoutAgent = new Driver(rig.test, kinds, async () => undefined);
});
afterAll(() => rig?.close());
const db = () => rig.test.database.db;

const nodeOf = async (nodeId: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, nodeId)))[0];
const waysIn = async (nodeId: NodeId) => ({
  tokens: (
    await db()
      .select()
      .from(enrollmentTokens)
      .where(and(eq(enrollmentTokens.nodeId, nodeId), isNull(enrollmentTokens.revokedAt)))
  ).length,
  certificates: (
    await db()
      .select()
      .from(nodeCertificates)
      .where(and(eq(nodeCertificates.nodeId, nodeId), isNull(nodeCertificates.revokedAt)))
  ).length,
  userData: rig.secrets.entries.has(`kv/nodes/${nodeId}/user-data`),
});
const NONE = { tokens: 0, certificates: 0, userData: false };

/** Runs `act` once, when the workflow has reached the given stage. */
const onceAt = (stage: OnboardingStage, act: () => Promise<unknown>): Parameters<Driver["drive"]>[1] => {
  let acted = false;
  return (row) => async (look) => {
    await plainly(look);
    if (row.stage !== stage || acted) return;
    acted = true;
    await act();
  };
};
async function cancelledAt(stage: OnboardingStage, n: number, driver: Driver) {
  const started = await rig.start(n);
  const end = await driver.drive(
    started.id,
    onceAt(stage, () => driver.verb(started.id, "cancel")),
  );
  expect(end.status, await driver.story(started.id)).toBe("cancelled");
  const machine = machineOf(rig, end);
  if (machine === undefined) throw new Error("no machine was found");
  return { ...started, end, machine };
}
function expectTold(
  { end, machine }: Pick<Awaited<ReturnType<typeof cancelledAt>>, "end" | "machine">,
  whose: string,
): void {
  expect(end).toMatchObject({
    failureCode: null,
    evidence: { maas_system_id: machine.systemId, maas_owner: machine.owner },
  });
  expect(end.failureMessage).toContain(`(${machine.systemId}) stays 'Deployed' in MAAS. ${whose}`);
  expect(end.nextAction).toMatch(/release/);
}
/** Renames the MAAS user and thereby the owner of the user's machines, as MAAS does. */
function renameUser(to: string): void {
  const { users, machines } = rig.maas.sim.region.state;
  const [user] = users;
  if (user === undefined) throw new Error("MAAS has no user");
  for (const machine of machines) if (machine.owner === user.username) machine.owner = to;
  user.username = to;
}

const begin = (nodeId: NodeId, mode: AgentMode): Promise<WorkflowId> => {
  const asked = { reason: "gone", agent_wait_seconds: 900 };
  const request =
    mode === "drain" ? ({ mode, ...asked, deadline_seconds: 0, force: true } as const) : ({ mode, ...asked } as const);
  return rig.test.database.inTx(async (tx) => (await startDecommission(tx, nodeId, request, "ann")).decommission_id);
};
async function forcedThrough(nodeId: NodeId, mode: AgentMode): Promise<void> {
  const workflowId = await begin(nodeId, mode);
  const who = { workflowId, actor: "ann", role: "admin", reason: "the agent cannot come" };
  await rig.test.database.inTx((tx) => applyForce(tx, withoutAgent.kinds, who));
  expect((await withoutAgent.drive(workflowId)).status).toBe("completed");
}

async function onboardedOnceReleased(n: number, systemId: string): Promise<void> {
  await (await rig.services.maas(rig.siteId)).release(systemId, { comment: "by a person" });
  await until("the machine to be Ready", () => rig.maas.sim.region.findMachine(systemId)?.status === 4 || undefined);
  const again = await rig.start(n);
  expect((await withAgent.drive(again.id)).status, await withAgent.story(again.id)).toBe("completed");
}

describe("an onboarding that is cancelled after the deploy", () => {
  it("deletes the node if the agent never enrolled, and leaves the host deployed", async () => {
    const left = await cancelledAt("ensure_hardware_sync_configured", 1, withoutAgent);
    const { nodeId, machine } = left;
    expectTold(left, "Muster's MAAS user owns it");
    expect(await nodeOf(nodeId)).toBeUndefined();
    expect(await waysIn(nodeId)).toEqual(NONE);
    expect(machine.status).toBe(6);
    await onboardedOnceReleased(1, machine.systemId);
  });

  it("quarantines a node whose agent has enrolled; the node is then drained and removed as usual", async () => {
    const { nodeId, machine } = await cancelledAt("wait_for_hardware_sync_healthy", 2, withAgent);
    expect(await nodeOf(nodeId)).toMatchObject({ status: "quarantined" });
    expect(await waysIn(nodeId)).toEqual(NONE);
    expect(machine.status).toBe(6);
    // The test acts as the hub's gateway, which ends the sessions of agents with revoked certificates.
    await setConnected(rig, nodeId, false);
    await forcedThrough(nodeId, "drain");
    await forcedThrough(nodeId, "remove");
    expect(await nodeOf(nodeId)).toMatchObject({ status: "deleted" });
    await onboardedOnceReleased(2, machine.systemId);
  });
});

describe("an onboarding whose machine has another owner name in MAAS", () => {
  it("continues when our MAAS user is renamed during the deploy", async () => {
    const { id } = await rig.start(6);
    const rename = onceAt("wait_for_deployed", async () => renameUser("renamed-once"));
    expect((await withAgent.drive(id, rename)).status, await withAgent.story(id)).toBe("completed");
  });

  it("takes the whole deploy back when it is cancelled after our MAAS user was renamed", async () => {
    const { id } = await rig.start(7);
    let cancelled = false;
    // The operator cancels the onboarding before any stage has seen the end of the deploy.
    const impatient = new Driver(rig.test, withAgent.kinds, async () => {
      if (cancelled || (await readWorkflow(db(), id))?.stage !== "wait_for_deployed") return;
      cancelled = true;
      renameUser("renamed-twice");
      await withAgent.verb(id, "cancel");
    });
    const end = await impatient.drive(id);
    expect(end, await withAgent.story(id)).toMatchObject({
      status: "cancelled",
      failureMessage: null,
      nextAction: null,
    });
    expect(machineOf(rig, end)).toMatchObject({ status: 4, owner: null });
  });

  it("fails when the machine belongs to another user, and its cancel says that the host stays with that user", async () => {
    const { id } = await rig.start(8);
    const taken = onceAt("ensure_hardware_sync_configured", async () => {
      const row = await readWorkflow(db(), id);
      const machine = row === null ? undefined : machineOf(rig, row);
      if (machine === undefined) throw new Error("no machine");
      machine.owner = "bob";
    });
    const failed = await withoutAgent.drive(id, taken);
    expect(failed).toMatchObject({ status: "failed_manual_intervention", failureCode: "machine_owned_by_other" });
    await withoutAgent.verb(id, "cancel");
    const end = await withoutAgent.drive(id);
    const machine = machineOf(rig, end);
    if (machine === undefined) throw new Error("no machine");
    expect(end.status).toBe("cancelled");
    expectTold({ end, machine }, "Its owner is bob, and not Muster's MAAS user");
    const [told] = await db()
      .select()
      .from(domainEvents)
      .where(and(eq(domainEvents.type, "node.onboarding.cancelled"), eq(domainEvents.subject, `onboardings/${id}`)));
    expect(told?.data).toMatchObject({ status: "cancelled", message: end.failureMessage });
  });
});

describe("a node left in enrolling", () => {
  /** Makes a state that a hub of an older version could leave: an ended onboarding whose node is still `enrolling`. */
  async function leftEnrolling(n: number) {
    const left = await cancelledAt("wait_for_hardware_sync_healthy", n, withAgent);
    await db().update(nodes).set({ status: "enrolling" }).where(eq(nodes.id, left.nodeId));
    return left;
  }

  it("is quarantined and then drained once no onboarding holds it", async () => {
    const { nodeId } = await leftEnrolling(3);
    await setConnected(rig, nodeId, false);
    await forcedThrough(nodeId, "drain");
    expect(await nodeOf(nodeId)).toMatchObject({ status: "retired" });
    const moves = await db().select().from(nodeEvents).where(eq(nodeEvents.nodeId, nodeId)).orderBy(nodeEvents.id);
    const statuses = moves.flatMap((event) => event.toStatus ?? []);
    expect(statuses.slice(-3)).toEqual(["quarantined", "draining", "retired"]);
  });

  it("is not drained while an onboarding holds it", async () => {
    const { id, nodeId } = await rig.start(4);
    let refused = false;
    const end = await withAgent.drive(
      id,
      onceAt("wait_for_deployed", async () => {
        await expect(begin(nodeId, "drain")).rejects.toMatchObject({
          code: "conflict",
          context: { node_id: nodeId, onboarding_id: id },
        });
        refused = true;
      }),
    );
    expect(refused).toBe(true);
    expect(end.status).toBe("completed");
  });

  it("gets no new identity from an onboarding when it was quarantined in the meantime", async () => {
    const { nodeId, hostname, machine } = await leftEnrolling(5);
    await (await rig.services.maas(rig.siteId)).release(machine.systemId, { comment: "by a person" });
    await until("the machine to be Ready", () => machine.status === 4 || undefined);
    const again = await rig.start(5);
    expect(again).toMatchObject({ nodeId, hostname });
    const { inTx } = rig.test.database;
    const end = await withAgent.drive(
      again.id,
      onceAt("configure_storage", () =>
        inTx((tx) => moveNode(tx, nodeId, { from: "enrolling", to: "quarantined", owner: "operator" }, "suspicious")),
      ),
    );
    expect(end).toMatchObject({
      status: "failed_manual_intervention",
      stage: "render_cloud_init",
      failureCode: "node_state_conflict",
      evidence: { node_id: nodeId, node_status: "quarantined" },
    });
    expect(await waysIn(nodeId)).toEqual(NONE);
  });
});
