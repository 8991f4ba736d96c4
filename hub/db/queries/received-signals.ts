import type { StoredOutcome } from "../../../shared/api/signals.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, desc, eq, inArray, or, type SQL, sql } from "../orm.ts";
import { type ReceivedSignalRow, receivedSignals } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";

export type StoredSignal = Pick<ReceivedSignalRow, "signalId" | "contentSha256" | "outcome" | "nodeId">;

/** Returns the signals that a sender has sent first under each of the ids. */
export async function firstSignals(tx: Tx, sender: string, signalIds: readonly string[]): Promise<StoredSignal[]> {
  const { signalId, contentSha256, outcome, nodeId } = receivedSignals;
  return tx
    .select({ signalId, contentSha256, outcome, nodeId })
    .from(receivedSignals)
    .where(and(eq(receivedSignals.sender, sender), inArray(signalId, [...signalIds]), sql`${outcome} <> 'reused'`));
}

/**
 * Stores a signal, and returns false if the sender's signal of this id is stored already. A parked signal has no time of a decision, and every other
 * signal has the time at which it is stored.
 */
export async function insertReceived(
  tx: Tx,
  signal: Omit<typeof receivedSignals.$inferInsert, "decidedAt" | "parkedUntil">,
  parkedSeconds: number,
): Promise<boolean> {
  const parked = signal.outcome === "parked";
  const stored = await tx
    .insert(receivedSignals)
    .values({
      ...signal,
      decidedAt: parked ? null : sql`now()`,
      parkedUntil: parked ? sql`now() + make_interval(secs => ${parkedSeconds})` : null,
    })
    .onConflictDoNothing()
    .returning({ id: receivedSignals.id });
  return stored.length > 0;
}

export async function countParked(tx: Tx, sender: string): Promise<{ sender: number; all: number }> {
  const { rows } = await tx.execute<{ sender: number; all: number }>(sql`
    select count(*) filter (where sender = ${sender})::int as sender, count(*)::int as all
    from ${receivedSignals} where outcome = 'parked'`);
  return rows[0] ?? { sender: 0, all: 0 };
}

/** Keeps the newest signals about a node. */
export async function forgetOldReceived(tx: Tx, nodeId: NodeId, keep: number): Promise<void> {
  await tx.execute(sql`
    delete from ${receivedSignals} where node_id = ${nodeId} and (received_at, id) <= (
      select s.received_at, s.id from ${receivedSignals} s where s.node_id = ${nodeId}
      order by s.received_at desc, s.id desc offset ${keep} limit 1)`);
}

/** Keeps the newest signals of a sender that no node has, and that are no longer parked. */
export async function forgetHomeless(tx: Tx, sender: string, keep: number): Promise<void> {
  await tx.execute(sql`
    delete from ${receivedSignals} where sender = ${sender} and node_id is null and outcome <> 'parked' and (received_at, id) <= (
      select s.received_at, s.id from ${receivedSignals} s where s.sender = ${sender} and s.node_id is null and s.outcome <> 'parked'
      order by s.received_at desc, s.id desc offset ${keep} limit 1)`);
}

export async function removeReceived(tx: Tx, nodeId: NodeId): Promise<number> {
  const { rowCount } = await tx.execute(sql`delete from ${receivedSignals} where node_id = ${nodeId}`);
  return rowCount ?? 0;
}

/** Locks parked signals for one turn of the sweep, the oldest first. Another hub's sweep leaves locked signals out. */
export const lockParked = (tx: Tx, most: number): Promise<ReceivedSignalRow[]> =>
  tx
    .select()
    .from(receivedSignals)
    .where(eq(receivedSignals.outcome, "parked"))
    .orderBy(asc(receivedSignals.receivedAt))
    .limit(most)
    .for("update", { skipLocked: true });

/** Gives up the signals for which no node has appeared in time. Returns their number. */
export async function expireParked(tx: Tx): Promise<number> {
  const { rowCount } = await tx.execute(sql`
    update ${receivedSignals} set outcome = 'expired', decided_at = now(), detail = 'no node has fitted in time'
    where outcome = 'parked' and parked_until <= now()`);
  return rowCount ?? 0;
}

export async function decideParked(
  tx: Tx,
  id: string,
  decision: Pick<ReceivedSignalRow, "outcome" | "detail" | "nodeId" | "siteId">,
): Promise<void> {
  await tx
    .update(receivedSignals)
    .set({ ...decision, decidedAt: sql`now()` })
    .where(eq(receivedSignals.id, id));
}

export interface ReceivedFilter {
  readonly outcome?: StoredOutcome | undefined;
  readonly nodeId?: NodeId | undefined;
  readonly sender?: string | undefined;
  readonly reach: Reach;
  /** The name of the caller, who sees the own signals for which no node has been found. */
  readonly caller: string;
}

/** The newest signals first. A caller who is limited to sites sees the signals about nodes of these sites. */
export async function listReceived(
  db: Db,
  { outcome, nodeId, sender, reach, caller }: ReceivedFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ signal: ReceivedSignalRow; at: string }[]> {
  const { receivedAt, id } = receivedSignals;
  const conditions: (SQL | undefined)[] = [
    outcome === undefined ? undefined : eq(receivedSignals.outcome, outcome),
    nodeId === undefined ? undefined : eq(receivedSignals.nodeId, nodeId),
    sender === undefined ? undefined : eq(receivedSignals.sender, sender),
    or(
      isWithin(reach, { site: receivedSignals.siteId }) ?? sql`true`,
      sql`${receivedSignals.sender} = ${caller} and ${receivedSignals.siteId} is null and ${receivedSignals.outcome} <> 'foreign'`,
    ),
    page.before === null
      ? undefined
      : sql`(${receivedAt}, ${id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  return db
    .select({ signal: receivedSignals, at: sql<string>`${receivedAt}::text` })
    .from(receivedSignals)
    .where(and(...conditions))
    .orderBy(desc(receivedAt), desc(id))
    .limit(page.limit);
}
