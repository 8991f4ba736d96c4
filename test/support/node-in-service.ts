import { randomUUID } from "node:crypto";
import { sql } from "../../hub/db/orm.ts";
import { bindNodeToMachine } from "../../hub/db/queries/node-machines.ts";
import { agentSessions, nodeCertificates, nodeOnboardings, workflows } from "../../hub/db/schema/index.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { NodeId, WorkflowId } from "../../shared/ids.ts";
import { type OnboardingRig, SKU } from "./onboarding-rig.ts";

/** Marks the node's agent as connected or disconnected, with the present time as the agent's last contact. */
export async function setConnected(rig: OnboardingRig, nodeId: NodeId, open: boolean): Promise<void> {
  const state = open ? "open" : "closed";
  await rig.services.db
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
    .onConflictDoUpdate({ target: agentSessions.nodeId, set: { state, lastSeenAt: sql`clock_timestamp()` } });
}

/** Creates an active node with a connected agent, as an onboarding does, but without a machine in the simulated MAAS region. */
export async function nodeInService(rig: OnboardingRig, hostname: string): Promise<NodeId> {
  const nodeId = NodeId.parse(randomUUID());
  await rig.services.inTx(async (tx) => {
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
  });
  await setConnected(rig, nodeId, true);
  return nodeId;
}

export interface OnboardedHost {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly ipmiIp: string;
  readonly maasSystemId: string;
}

export async function recordOnboarding(
  rig: OnboardingRig,
  { nodeId, hostname, ipmiIp, maasSystemId }: OnboardedHost,
  profileId = rig.profileId,
): Promise<void> {
  const { siteId } = rig;
  const id = WorkflowId.parse(randomUUID());
  await rig.services.inTx(async (tx) => {
    await tx.insert(workflows).values({
      id,
      kind: "onboard",
      status: "completed",
      siteId,
      stage: "wait_for_agent_enrollment",
      completedAt: sql`now()`,
      input: { hostname, ipmi_ip: ipmiIp },
    });
    const about = { nodeId, siteId, hostname, ipmiIp, maasSystemId };
    await tx.insert(nodeOnboardings).values({ onboardingId: id, profileId, skuId: SKU, ...about });
    await bindNodeToMachine(tx, { nodeId, siteId, maasSystemId, ipmiIp });
  });
}
