import { type ConditionSource, maySay, ruleOf } from "../../shared/condition-types.ts";
import type { NodeId } from "../../shared/ids.ts";
import type {
  ConditionOf,
  ForeignReadinessSignal,
  ReadinessSource,
  ReportedCondition,
  SignalOutcome,
} from "../../shared/readiness.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { KEPT_OF_A_NODE } from "../db/kept.ts";
import { sql } from "../db/orm.ts";
import { forgetOldSignals } from "../db/queries/readiness-signals.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import { nodeConditions, readinessSignals } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Takes a readiness signal: once per id, and onto the conditions only when it is of the node's present generation (architecture 11). One of
 * another generation is kept and not applied, and so is a type that is not this source's to say, e.g. one of a newer agent. A condition observed earlier
 * than the one that is there does not replace it, unless that one is stale: a host's clock that was set back must not make its agent unheard.
 */
export async function applyReadinessSignal(
  tx: Tx,
  node: { id: NodeId; generation: number },
  source: ReadinessSource,
  signal: ForeignReadinessSignal,
): Promise<SignalOutcome> {
  const applied = signal.generation === node.generation;
  const told = signal.conditions.map((one) => ({ ...one, message: withoutCredentials(one.message) }));
  const [fresh] = await tx
    .insert(readinessSignals)
    .values({
      id: signal.signal_id,
      nodeId: node.id,
      generation: signal.generation,
      source,
      bootId: signal.boot_id ?? null,
      conditions: told,
      applied,
    })
    .onConflictDoNothing()
    .returning({ id: readinessSignals.id });
  if (fresh === undefined) return "known";
  await forgetOldSignals(tx, node.id, source, KEPT_OF_A_NODE.signals);
  if (!applied) return "kept";
  const conditions = told.filter(({ type }) => maySay(source, type));
  if (conditions.length > 0) await writeConditions(tx, node, source, conditions);
  return "applied";
}

/**
 * Writes conditions of the node's present generation and wakes whoever waits on the node. A host's clock that is ahead must not make its words
 * hold against later ones: nothing is observed after now.
 */
async function writeConditions(
  tx: Tx,
  node: { id: NodeId; generation: number },
  source: ConditionSource,
  conditions: readonly ReportedCondition[],
): Promise<void> {
  await tx
    .insert(nodeConditions)
    .values(
      [...new Map(conditions.map((condition) => [condition.type, condition])).values()].map((condition) => ({
        nodeId: node.id,
        type: condition.type,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        generation: node.generation,
        source,
        observedAt: sql`least(${observedAt(condition)}::timestamptz, now())`,
        expiresAt: expiryOf(condition.type),
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
      setWhere: sql`(${nodeConditions.generation}, ${nodeConditions.observedAt}) <= (excluded.generation, excluded.observed_at)
        or (${nodeConditions.generation} = excluded.generation and ${nodeConditions.expiresAt} <= now())`,
    });
  await wakeWorkflows(tx, [waitKey.node(node.id)]);
}

/** Years that only ISO 8601 knows, and PostgreSQL does not, become 1970. */
const observedAt = (condition: ReportedCondition): string =>
  new Date(Math.max(0, Date.parse(condition.observed_at) || 0)).toISOString();

/** From when on a word on this type that comes now is stale: by the database's clock, whatever the host's says. */
function expiryOf(type: string) {
  const life = ruleOf(type)?.lifeSeconds ?? null;
  return life === null ? null : sql`now() + make_interval(secs => ${life})`;
}

/** What the hub itself knows of a node; its time is the database's, and its newest word counts. */
export async function writeOwnCondition(
  tx: Tx,
  node: { id: NodeId; generation: number },
  said: Pick<ConditionOf<"hub">, "type" | "status" | "reason" | "message">,
): Promise<void> {
  const values = { ...said, generation: node.generation, source: "hub", observedAt: sql`now()` } as const;
  const expiresAt = expiryOf(said.type);
  await tx
    .insert(nodeConditions)
    .values({ ...values, nodeId: node.id, expiresAt })
    .onConflictDoUpdate({ target: [nodeConditions.nodeId, nodeConditions.type], set: { ...values, expiresAt } });
  await wakeWorkflows(tx, [waitKey.node(node.id)]);
}

/** Whether the channel is open is the hub's own knowledge; nobody else's word on it counts. */
export const writeConnected = (
  tx: Tx,
  node: { id: NodeId; generation: number },
  status: "True" | "False" | "Unknown",
  reason: string,
  message: string,
): Promise<void> => writeOwnCondition(tx, node, { type: "agent.connected", status, reason, message });
