import { sql } from "drizzle-orm";
import type { NodeId } from "../../shared/ids.ts";
import type { ReadinessSignal, ReportedCondition } from "../../shared/readiness.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import { nodeConditions, readinessSignals } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Takes a readiness signal: once per id, and onto the conditions only when it is of the node's present generation (architecture 7). One of
 * another generation is kept and not applied. A condition observed earlier than the one that is there does not replace it.
 */
export async function applyReadinessSignal(
  tx: Tx,
  node: { id: NodeId; generation: number },
  source: string,
  signal: ReadinessSignal,
): Promise<"applied" | "kept" | "known"> {
  const applied = signal.generation === node.generation;
  const [fresh] = await tx
    .insert(readinessSignals)
    .values({
      id: signal.signal_id,
      nodeId: node.id,
      generation: signal.generation,
      source,
      bootId: signal.boot_id,
      conditions: signal.conditions,
      applied,
    })
    .onConflictDoNothing()
    .returning({ id: readinessSignals.id });
  if (fresh === undefined) return "known";
  if (!applied) return "kept";
  await writeConditions(tx, node, source, signal.conditions);
  return "applied";
}

/** Writes conditions of the node's present generation and wakes whoever waits on the node. */
async function writeConditions(
  tx: Tx,
  node: { id: NodeId; generation: number },
  source: string,
  conditions: readonly ReportedCondition[],
): Promise<void> {
  await tx
    .insert(nodeConditions)
    .values(
      conditions.map((condition) => ({
        nodeId: node.id,
        type: condition.type,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        generation: node.generation,
        source,
        observedAt: new Date(condition.observed_at),
      })),
    )
    .onConflictDoUpdate({
      target: [nodeConditions.nodeId, nodeConditions.type],
      set: {
        status: sql`excluded.status`,
        reason: sql`excluded.reason`,
        message: sql`excluded.message`,
        generation: sql`excluded.generation`,
        source: sql`excluded.source`,
        observedAt: sql`excluded.observed_at`,
        expiresAt: sql`excluded.expires_at`,
      },
      setWhere: sql`(${nodeConditions.generation}, ${nodeConditions.observedAt}) <= (excluded.generation, excluded.observed_at)`,
    });
  await wakeWorkflows(tx, [waitKey.node(node.id)]);
}

/** What the hub itself knows of the channel; its time is the database's. */
export async function writeConnected(
  tx: Tx,
  node: { id: NodeId; generation: number },
  status: "True" | "False" | "Unknown",
  reason: string,
  message: string,
): Promise<void> {
  await tx
    .insert(nodeConditions)
    .values({
      nodeId: node.id,
      type: "agent.connected",
      status,
      reason,
      message,
      generation: node.generation,
      source: "hub",
      observedAt: sql`now()`,
    })
    .onConflictDoUpdate({
      target: [nodeConditions.nodeId, nodeConditions.type],
      set: { status, reason, message, generation: node.generation, source: "hub", observedAt: sql`now()` },
    });
  await wakeWorkflows(tx, [waitKey.node(node.id)]);
}
