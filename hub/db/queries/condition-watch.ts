import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, lte, ne, type SQL, sql } from "../orm.ts";
import { conditionWatch, type NodeConditionRow, nodeConditions, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { extendExpiries } from "./node-conditions.ts";

/**
 * Locks the row that says up to which expiry time the hubs have already looked for stale conditions, so that each search continues where the previous
 * one stopped.
 */
export async function lockConditionWatch(tx: Tx): Promise<{ idleSeconds: number; inGrace: boolean } | null> {
  await tx.insert(conditionWatch).values({}).onConflictDoNothing();
  const [row] = await tx
    .select({
      idleSeconds: sql<number>`extract(epoch from now() - ${conditionWatch.lookedAt})::float8`,
      inGrace: sql<boolean>`${conditionWatch.graceUntil} is not null`,
    })
    .from(conditionWatch)
    .for("update");
  return row ?? null;
}

/**
 * PostgreSQL's now() is the begin of a transaction, so a transaction that waited for a lock may see a now() before a stored time. SQL's `greatest`
 * keeps the times in the table `condition_watch` from moving backwards.
 */
const orNow = (column: typeof conditionWatch.lookedUntil | typeof conditionWatch.lookedAt) =>
  sql`greatest(${column}, now())`;

export async function lookedUntil(tx: Tx, until: string | null): Promise<void> {
  const { lookedUntil, lookedAt } = conditionWatch;
  const told = until === null ? orNow(lookedUntil) : sql`${until}::timestamptz`;
  await tx.update(conditionWatch).set({ lookedUntil: told, lookedAt: orNow(lookedAt) });
}

export async function beginGrace(tx: Tx, seconds: number): Promise<void> {
  await tx.update(conditionWatch).set({ graceUntil: sql`now() + make_interval(secs => ${seconds})` });
}

/**
 * After an outage of all hubs, gives up to `most` conditions that had not expired before the outage a later expiry time. All conditions that one call
 * of `extendConditions` extends get the same expiry time, and each call sets a different one. Because the extended conditions expire in groups at
 * different times, the search for stale conditions finds only a limited number of them at once.
 */
export async function extendConditions(tx: Tx, seconds: number, most: number): Promise<void> {
  const more = (await extendExpiries(tx, seconds, most)) >= most;
  await tx
    .update(conditionWatch)
    .set({ lookedAt: orNow(conditionWatch.lookedAt), ...(more ? {} : { graceUntil: null }) });
}

export interface StaleCondition
  extends Pick<NodeConditionRow, "type" | "status" | "observedAt" | "expiresAt" | "nodeId"> {
  readonly hostname: string;
}

/** Among the conditions that expired since the last search for stale conditions, returns the expiry time of the `most`-th, with its microseconds. */
export async function endOfStep(tx: Tx, most: number): Promise<string | null> {
  const { expiresAt } = nodeConditions;
  const [row] = await tx
    .select({ at: sql<string>`${expiresAt}::text` })
    .from(nodeConditions)
    .where(hasExpired(null))
    .orderBy(asc(expiresAt))
    .offset(most - 1)
    .limit(1);
  return row?.at ?? null;
}

const hasExpired = (until: string | null): SQL | undefined =>
  and(
    gt(nodeConditions.expiresAt, sql`(select looked_until from condition_watch)`),
    lte(nodeConditions.expiresAt, until === null ? sql`now()` : sql`${until}::timestamptz`),
  );

/** If `until` is null, `newlyStale` returns all conditions that expired between the last search for stale conditions and now. */
export async function newlyStale(tx: Tx, until: string | null): Promise<StaleCondition[]> {
  const { type, status, observedAt, expiresAt } = nodeConditions;
  return tx
    .select({ nodeId: sql<NodeId>`${nodes.id}`, hostname: nodes.hostname, type, status, observedAt, expiresAt })
    .from(nodeConditions)
    .innerJoin(nodes, and(eq(nodes.id, nodeConditions.nodeId), eq(nodes.generation, nodeConditions.generation)))
    .where(and(hasExpired(until), ne(nodes.status, "deleted")))
    .orderBy(asc(nodes.id), asc(type));
}
