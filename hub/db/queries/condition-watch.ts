import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, lt, lte, ne, sql } from "../orm.ts";
import { conditionWatch, type NodeConditionRow, nodeConditions, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** Until when it was looked, held until the transaction ends, so that of several hubs each takes the time after the one before. Null: never. */
export async function lockConditionWatch(tx: Tx): Promise<{ lookedUntil: Date; idleSeconds: number } | null> {
  await tx.insert(conditionWatch).values({}).onConflictDoNothing();
  const [row] = await tx
    .select({
      lookedUntil: conditionWatch.lookedUntil,
      idleSeconds: sql<number>`extract(epoch from now() - ${conditionWatch.lookedUntil})::float8`,
    })
    .from(conditionWatch)
    .for("update");
  return row ?? null;
}

/** One that waited for the lock began before the one that it waited for: time is never gone back over. */
export async function lookedUntilNow(tx: Tx): Promise<void> {
  await tx.update(conditionWatch).set({ lookedUntil: sql`now()` }).where(lt(conditionWatch.lookedUntil, sql`now()`));
}

/** What held still when it was last looked holds for so much longer from now. */
export async function extendConditions(tx: Tx, seconds: number): Promise<void> {
  const until = sql`now() + make_interval(secs => ${seconds})`;
  await tx
    .update(nodeConditions)
    .set({ expiresAt: until })
    .where(
      and(
        gt(nodeConditions.expiresAt, sql`(select looked_until from condition_watch)`),
        lt(nodeConditions.expiresAt, until),
      ),
    );
}

export interface StaleCondition
  extends Pick<NodeConditionRow, "type" | "status" | "observedAt" | "expiresAt" | "nodeId"> {
  readonly hostname: string;
}

/** Conditions of nodes' present provisioning that have become stale since it was last looked. */
export async function newlyStale(tx: Tx): Promise<StaleCondition[]> {
  const { type, status, observedAt, expiresAt } = nodeConditions;
  return tx
    .select({ nodeId: sql<NodeId>`${nodes.id}`, hostname: nodes.hostname, type, status, observedAt, expiresAt })
    .from(nodeConditions)
    .innerJoin(nodes, and(eq(nodes.id, nodeConditions.nodeId), eq(nodes.generation, nodeConditions.generation)))
    .where(
      and(
        gt(expiresAt, sql`(select looked_until from condition_watch)`),
        lte(expiresAt, sql`now()`),
        ne(nodes.status, "deleted"),
      ),
    )
    .orderBy(asc(nodes.id), asc(type));
}
