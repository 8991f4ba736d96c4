import { randomUUID } from "node:crypto";
import { eq, sql } from "../../hub/db/orm.ts";
import { nodeBaselines, nodeConditions, nodeOnboardings, nodes, tasks, workflows } from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { type NodeId, type ProfileId, type SiteId, TaskId, WorkflowId } from "../../shared/ids.ts";
import { EMPTY_SNAPSHOT } from "./agent-results.ts";
import { addNodeInService } from "./site-nodes.ts";

/** A valid SSH public key. Nobody has the private key that belongs to `SSH_KEY`. */
export const SSH_KEY =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tester@example";

/** The conditions that a node needs before the hub places work on the node. */
const NEEDED = ["agent.connected", "agent.healthy", "os.booted"] as const;

/** Writes the baseline of the node's generation, as the agent of a clean host reports it. */
export async function writeBaseline(tx: Tx, nodeId: NodeId): Promise<void> {
  const taken = { requestedBy: "hub", reason: "a test", snapshot: EMPTY_SNAPSHOT, takenAt: new Date(), bootId: "boot" };
  const taskId = TaskId.parse(randomUUID());
  await tx
    .insert(nodeBaselines)
    .values({ nodeId, generation: sql`(select generation from nodes where id = ${nodeId})`, taskId, ...taken })
    .onConflictDoNothing();
}

/** Writes the node's baseline and the conditions that scheduling reads, with the values that the agent of a clean host would report. */
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

/** Creates an active node with the given SKU. The created node takes new allocations. */
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

/**
 * Ends a task in the database, as the hub does after the agent's report. Without `ending`, `endTask` stores the result of a task that has created a
 * tenant's account.
 */
export async function endTask(tx: Tx, id: TaskId, ending: Partial<typeof tasks.$inferInsert> = {}): Promise<void> {
  await tx
    .update(tasks)
    .set({ state: "succeeded", result: { uid: 30_001, steps: [GRANTED] }, finishedAt: sql`now()`, ...ending })
    .where(eq(tasks.id, id));
}

/** Writes the database rows of a finished onboarding of the node with the given profile. */
export async function onboardedWith(
  tx: Tx,
  { profileId, ...about }: { nodeId: NodeId; siteId: SiteId; profileId: ProfileId; hostname: string },
): Promise<void> {
  const onboardingId = WorkflowId.parse(randomUUID());
  const ended = { status: "completed", stage: "wait_for_agent_enrollment", input: {} } as const;
  await tx.insert(workflows).values({ id: onboardingId, kind: "onboard", siteId: about.siteId, ...ended });
  await tx.insert(nodeOnboardings).values({ onboardingId, profileId, skuId: "s", ipmiIp: "10.0.0.1", ...about });
}
