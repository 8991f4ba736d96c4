import { randomUUID } from "node:crypto";
import { eq, sql } from "../../hub/db/orm.ts";
import { nodeBaselines, nodeConditions, nodeOnboardings, nodes, tasks, workflows } from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { type NodeId, type ProfileId, type SiteId, TaskId, WorkflowId } from "../../shared/ids.ts";
import { EMPTY_SNAPSHOT } from "./agent-results.ts";
import { addNodeInService } from "./site-nodes.ts";

/** `SSH_KEY` is a public key of which nobody has the private key. */
export const SSH_KEY =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tester@example";

const NEEDED = ["agent.connected", "agent.healthy", "os.booted", "hardware.sku"] as const;

export async function writeBaseline(tx: Tx, nodeId: NodeId): Promise<void> {
  const taken = { requestedBy: "hub", reason: "a test", snapshot: EMPTY_SNAPSHOT, takenAt: new Date(), bootId: "boot" };
  const taskId = TaskId.parse(randomUUID());
  await tx
    .insert(nodeBaselines)
    .values({ nodeId, generation: sql`(select generation from nodes where id = ${nodeId})`, taskId, ...taken })
    .onConflictDoNothing();
}

export async function makeSchedulable(tx: Tx, nodeId: NodeId): Promise<void> {
  await writeBaseline(tx, nodeId);
  await tx.insert(nodeConditions).values(
    NEEDED.map((type) => ({
      nodeId,
      type,
      status: "True" as const,
      reason: "Fine",
      message: "",
      generation: sql`(select generation from nodes where id = ${nodeId})`,
      source: "agent" as const,
      observedAt: sql`now()`,
    })),
  );
}

/** Creates an active node that takes new allocations. */
export async function addSchedulableNode(
  tx: Tx,
  { sku, ...host }: { readonly siteId: SiteId; readonly hostname: string; readonly sku: string },
): Promise<NodeId> {
  const nodeId = await addNodeInService(tx, host);
  await tx.update(nodes).set({ sku }).where(eq(nodes.id, nodeId));
  await makeSchedulable(tx, nodeId);
  return nodeId;
}

const GRANTED = { step: "account", target: "acme", outcome: "ok", message: "made", evidence: {} } as const;

/** Without `ending`, `endTask` stores the result of a task that has created a tenant's account. */
export async function endTask(tx: Tx, id: TaskId, ending: Partial<typeof tasks.$inferInsert> = {}): Promise<void> {
  await tx
    .update(tasks)
    .set({ state: "succeeded", result: { uid: 30_001, steps: [GRANTED] }, finishedAt: sql`now()`, ...ending })
    .where(eq(tasks.id, id));
}

export async function onboardedWith(
  tx: Tx,
  { profileId, ...about }: { nodeId: NodeId; siteId: SiteId; profileId: ProfileId; hostname: string },
): Promise<void> {
  const onboardingId = WorkflowId.parse(randomUUID());
  const ended = { status: "completed", stage: "wait_for_agent_enrollment", input: {} } as const;
  await tx.insert(workflows).values({ id: onboardingId, kind: "onboard", siteId: about.siteId, ...ended });
  await tx.insert(nodeOnboardings).values({ onboardingId, profileId, skuId: "s", ipmiIp: "10.0.0.1", ...about });
}
