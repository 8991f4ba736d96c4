import { randomUUID } from "node:crypto";
import { and, eq, inArray, sql } from "drizzle-orm";
import { readDecommissionRows } from "../../hub/db/queries/decommissions.ts";
import { waitKey, wakeWorkflows } from "../../hub/db/queries/workflow-wakes.ts";
import { agentSessions, nodeCertificates, tasks } from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { enterDraining, retire } from "../../hub/node/lifecycle.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { startDecommission } from "../../hub/workflows/start-decommission.ts";
import { NodeId, type WorkflowId } from "../../shared/ids.ts";
import type { DecommissionMode } from "../../shared/workflow-status.ts";
import { type OnboardingRig, SKU } from "./onboarding-rig.ts";

/** The modes whose outside effect is a task of the agent. */
export type AgentMode = Exclude<DecommissionMode, "release">;

export interface StartedDecommission {
  readonly id: WorkflowId;
  readonly nodeId: NodeId;
  readonly hostname: string;
}

/** Whether the agent of the node is connected. */
async function connect(tx: Tx, nodeId: NodeId, open: boolean): Promise<void> {
  const state = open ? "open" : "closed";
  await tx
    .insert(agentSessions)
    .values({
      nodeId,
      sessionEpoch: 1,
      hubId: randomUUID(),
      channel: "websocket",
      state,
      bootId: "boot",
      agentVersion: "1",
      protocolVersion: 1,
      generation: 0,
      heartbeatTtlMs: 30_000,
    })
    .onConflictDoUpdate({ target: agentSessions.nodeId, set: { state } });
}

export const setConnected = (rig: OnboardingRig, nodeId: NodeId, open: boolean): Promise<void> =>
  rig.test.database.inTx((tx) => connect(tx, nodeId, open));

/** An active node with a connected agent, as an onboarding leaves it. */
export async function nodeInService(rig: OnboardingRig, hostname: string): Promise<NodeId> {
  const nodeId = NodeId.parse(randomUUID());
  await rig.test.database.inTx(async (tx) => {
    await createNode(tx, {
      id: nodeId,
      hostname,
      siteId: rig.siteId,
      sku: SKU,
      gpusTotal: 8,
      regionCode: "r1",
      onboardingMode: "maas",
      owner: "onboarding",
    });
    await moveNode(tx, nodeId, { from: "enrolling", to: "active", owner: "onboarding" }, "Onboarded");
    await tx.insert(nodeCertificates).values({
      serial: nodeId,
      nodeId,
      generation: 0,
      publicKeySha256: "",
      notBefore: new Date(),
      notAfter: new Date(Date.now() + 86_400_000),
    });
    await connect(tx, nodeId, true);
  });
  return nodeId;
}

/** A drain of a node in service, or a remove of one that was drained before. */
export async function decommission(
  rig: OnboardingRig,
  mode: AgentMode,
  hostname: string,
): Promise<StartedDecommission> {
  const nodeId = await nodeInService(rig, hostname);
  const { inTx } = rig.test.database;
  if (mode === "remove")
    await inTx(async (tx) => {
      await enterDraining(tx, nodeId, randomUUID(), "drained before");
      await retire(tx, nodeId, "drained before");
    });
  const knobs = { reason: "old", agent_wait_seconds: 900 };
  const request =
    mode === "drain"
      ? ({ mode, ...knobs, deadline_seconds: 60, force: false } as const)
      : ({ mode, ...knobs } as const);
  const created = await inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
  return { id: created.decommission_id, nodeId, hostname };
}

/** What a connected agent would have done by now: each task that waits for it has succeeded. */
export async function playDecommissionedAgent(rig: OnboardingRig, id: WorkflowId): Promise<void> {
  const { inTx } = rig.test.database;
  const rows = await inTx((tx) => readDecommissionRows(tx, id));
  if (rows === null) return;
  const { node } = rows;
  await inTx(async (tx) => {
    const [session] = await tx.select().from(agentSessions).where(eq(agentSessions.nodeId, node.id));
    if (session?.state !== "open") return;
    const done = await tx
      .update(tasks)
      .set({
        state: "succeeded",
        attempts: sql`${tasks.attempts} + 1`,
        finishedAt: sql`clock_timestamp()`,
        leaseUntil: null,
      })
      .where(and(eq(tasks.nodeId, node.id), inArray(tasks.state, ["queued", "offered"])))
      .returning({ id: tasks.id });
    await wakeWorkflows(
      tx,
      done.map((task) => waitKey.task(task.id)),
    );
  });
}
