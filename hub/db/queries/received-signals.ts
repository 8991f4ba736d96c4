import type { StoredOutcome } from "../../../shared/api/signals.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, desc, eq, inArray, or, type SQL, sql } from "../orm.ts";
import { apiTokens, type ReceivedSignalRow, receivedSignals, signalSenders } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { actorOfSender } from "./signal-senders.ts";

export type StoredSignal = Pick<ReceivedSignalRow, "signalId" | "contentSha256" | "outcome" | "nodeId" | "detail"> & {
  /** True for a signal that has waited for its node as long as the hub allows (`parked_until`). */
  readonly isOver: boolean;
};

/**
 * The outcomes under which the hub stores a readiness signal that waits until the hub finds its node. A signal about a node outside of the sender's
 * sites waits exactly as one about an unknown node, so that the sender cannot learn from any answer that the node exists.
 */
const WAITING: readonly StoredOutcome[] = ["parked", "foreign"];
const NOT_IN_TIME = "no node has fitted in time";
const isOver = sql<boolean>`coalesce(${receivedSignals.parkedUntil} <= now(), false)`;
const isOfWaiting = inArray(receivedSignals.outcome, WAITING);
/** A waiting signal has no node, so PostgreSQL finds the few waiting signals by the index on `node_id`. */
const isWaiting = sql`${receivedSignals.nodeId} is null and ${isOfWaiting} and ${receivedSignals.parkedUntil} > now()`;

/** Returns, for each of the ids, the signal that the sender first sent under the id. */
export async function firstSignals(tx: Tx, sender: string, signalIds: readonly string[]): Promise<StoredSignal[]> {
  const { signalId, contentSha256, outcome, nodeId, detail } = receivedSignals;
  return tx
    .select({ signalId, contentSha256, outcome, nodeId, detail, isOver })
    .from(receivedSignals)
    .where(and(eq(receivedSignals.sender, sender), inArray(signalId, [...signalIds]), sql`${outcome} <> 'reused'`));
}

/**
 * Stores a signal, and returns false if the sender's signal of this id is stored already. A signal that waits for its node (outcome `parked`) has no
 * `decided_at`, and every other signal gets the time at which it is stored as its `decided_at`. A signal about a node outside of the sender's sites
 * (outcome `foreign`) waits as long as a signal about an unknown node (outcome `parked`).
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
      parkedUntil: WAITING.includes(signal.outcome) ? sql`now() + make_interval(secs => ${parkedSeconds})` : null,
    })
    .onConflictDoNothing()
    .returning({ id: receivedSignals.id });
  return stored.length > 0;
}

/** Counts the signals that wait for a node. */
export async function countWaiting(tx: Tx, sender: string): Promise<{ sender: number; all: number }> {
  const { rows } = await tx.execute<{ sender: number; all: number }>(sql`
    select count(*) filter (where sender = ${sender})::int as sender, count(*)::int as all
    from ${receivedSignals} where ${isWaiting}`);
  return rows[0] ?? { sender: 0, all: 0 };
}

/** Deletes the signals about a node, except the newest `keep`. */
export async function forgetOldReceived(tx: Tx, nodeId: NodeId, keep: number): Promise<void> {
  await tx.execute(sql`
    delete from ${receivedSignals} where node_id = ${nodeId} and (received_at, id) <= (
      select s.received_at, s.id from ${receivedSignals} s where s.node_id = ${nodeId}
      order by s.received_at desc, s.id desc offset ${keep} limit 1)`);
}

/** Deletes a sender's signals that have no node and no longer wait for one, except the newest `keep`. */
export async function forgetHomeless(tx: Tx, sender: string, keep: number): Promise<void> {
  await tx.execute(sql`
    with homeless as (
      select id, received_at from ${receivedSignals} where sender = ${sender} and node_id is null and (${isWaiting}) is not true)
    delete from ${receivedSignals} where id in (select id from homeless order by received_at desc, id desc offset ${keep})`);
}

export async function removeReceived(tx: Tx, nodeId: NodeId): Promise<number> {
  const { rowCount } = await tx.execute(sql`delete from ${receivedSignals} where node_id = ${nodeId}`);
  return rowCount ?? 0;
}

/** True for a sender that somebody has revoked: a system that signs its signals, or a token. */
const isOfRevoked = sql`(
  exists (select from ${signalSenders} s where s.revoked_at is not null and ${actorOfSender(sql`s.name`)} = ${receivedSignals.sender})
  or exists (select from ${apiTokens} k where k.revoked_at is not null and k.name = ${receivedSignals.sender}))`;

export type WaitingPlace = readonly [receivedAt: string, id: string];

/**
 * Locks the next signals that wait for a node, the oldest first, but none of a revoked sender. Another hub's sweep leaves locked signals out.
 * `receivedAt` in a `WaitingPlace`, the position in the list of waiting signals, is PostgreSQL's text of the time, because a JavaScript Date would
 * cut off the microseconds.
 */
export const lockWaiting = (
  tx: Tx,
  after: WaitingPlace | null,
  most: number,
): Promise<{ signal: ReceivedSignalRow; at: string }[]> => {
  const { receivedAt, id } = receivedSignals;
  const beyond =
    after === null ? undefined : sql`(${receivedAt}, ${id}) > (${after[0]}::timestamptz, ${after[1]}::uuid)`;
  return tx
    .select({ signal: receivedSignals, at: sql<string>`${receivedAt}::text` })
    .from(receivedSignals)
    .where(and(isWaiting, beyond, sql`not ${isOfRevoked}`))
    .orderBy(asc(receivedAt), asc(id))
    .limit(most)
    .for("update", { of: receivedSignals, skipLocked: true });
};

/**
 * Gives up the readiness signals for which no node has appeared in time. `expireParked` returns the number of these signals. As the time of its
 * decision, an expired signal has the end of the hub's wait for its node; a caller who is limited to sites sees the same for a signal about a node
 * outside of these sites.
 */
export async function expireParked(tx: Tx): Promise<number> {
  const { rowCount } = await tx.execute(sql`
    update ${receivedSignals} set outcome = 'expired', decided_at = parked_until, detail = ${NOT_IN_TIME}
    where outcome = 'parked' and parked_until <= now()`);
  return rowCount ?? 0;
}

/** Gives up the waiting signals of a sender that is revoked. */
export async function giveUpWaiting(tx: Tx, sender: string, detail: string): Promise<void> {
  await tx
    .update(receivedSignals)
    .set({ outcome: "expired", decidedAt: sql`now()`, detail })
    .where(and(eq(receivedSignals.sender, sender), isWaiting));
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
  /** The name of the caller who lists the signals; the caller also sees the caller's own signals for which the hub has found no node. */
  readonly caller: string;
}

/**
 * Lists the received signals, the newest first. A caller who is limited to sites sees the signals about nodes of these sites, and the signals that
 * the caller sent and that have no node. To a caller who is limited to sites, the caller's signal about a node at another site looks like a signal
 * about an unknown node.
 */
export async function listReceived(
  db: Db,
  { outcome, nodeId, sender, reach, caller }: ReceivedFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ signal: ReceivedSignalRow; at: string }[]> {
  const { receivedAt, id } = receivedSignals;
  const within = isWithin(reach, { site: receivedSignals.siteId }) ?? sql`true`;
  const looks = sql<StoredOutcome>`case
    when ${receivedSignals.outcome} = 'parked' or ${receivedSignals.outcome} = 'foreign' and (${within}) is not true
    then case when ${isOver} then 'expired' else 'parked' end else ${receivedSignals.outcome} end`;
  const conditions: (SQL | undefined)[] = [
    outcome === undefined ? undefined : sql`${looks} = ${outcome}`,
    nodeId === undefined ? undefined : eq(receivedSignals.nodeId, nodeId),
    sender === undefined ? undefined : eq(receivedSignals.sender, sender),
    or(within, sql`${receivedSignals.sender} = ${caller} and ${receivedSignals.nodeId} is null`),
    page.before === null
      ? undefined
      : sql`(${receivedAt}, ${id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  const rows = await db
    .select({ signal: receivedSignals, looks, at: sql<string>`${receivedAt}::text` })
    .from(receivedSignals)
    .where(and(...conditions))
    .orderBy(desc(receivedAt), desc(id))
    .limit(page.limit);
  return rows.map(({ signal, looks: shown, at }) => ({ signal: asShown(signal, shown), at }));
}

function asShown(signal: ReceivedSignalRow, outcome: StoredOutcome): ReceivedSignalRow {
  if (outcome === signal.outcome) return signal;
  const isExpired = outcome === "expired";
  return {
    ...signal,
    outcome,
    detail: isExpired ? NOT_IN_TIME : null,
    decidedAt: isExpired ? signal.parkedUntil : null,
  };
}
