import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, lte, ne, type SQL, sql } from "../orm.ts";
import { conditionWatch, type NodeConditionRow, nodeConditions, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { extendExpiries } from "./node-conditions.ts";

/** Locks the row with the progress of the sweep for stale conditions, so that each sweep continues where the previous sweep stopped. */
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
 * After an outage of the hubs, extends the conditions that were valid at the last sweep, at most `most` conditions in one step. All conditions that
 * one step extends expire at one time, and each step sets a different expiry time. Because extended conditions expire at different times, the sweep
 * after an outage finds them in bounded portions.
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

/** Returns the expiry time, to the microsecond, of the `most`-th condition that expired since the last sweep. */
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

/** If `until` is null, `newlyStale` returns all conditions that expired between the last sweep and now. */
export async function newlyStale(tx: Tx, until: string | null): Promise<StaleCondition[]> {
  const { type, status, observedAt, expiresAt } = nodeConditions;
  return tx
    .select({ nodeId: sql<NodeId>`${nodes.id}`, hostname: nodes.hostname, type, status, observedAt, expiresAt })
    .from(nodeConditions)
    .innerJoin(nodes, and(eq(nodes.id, nodeConditions.nodeId), eq(nodes.generation, nodeConditions.generation)))
    .where(and(hasExpired(until), ne(nodes.status, "deleted")))
    .orderBy(asc(nodes.id), asc(type));
}
