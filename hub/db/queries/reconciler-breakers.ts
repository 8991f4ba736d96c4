import type { BreakerKind } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, sql } from "../orm.ts";
import { type ReconcilerBreaker, reconcilerBreakers } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { EVERYWHERE, isWithin, type Reach } from "./reach.ts";

/**
 * A site's fleet breaker in the state `open` stops status changes of nodes or automatic repair requests, because they would affect too many nodes at
 * once. A site's fleet breaker in the state `accepting` lets every status change or repair request through for a while, because a person accepted
 * them.
 */
export type BreakerState = "closed" | "open" | "accepting";

export interface Breaker {
  readonly state: BreakerState;
  readonly trippedAt: Date | null;
}

export async function readBreaker(tx: Tx, siteId: SiteId, kind: BreakerKind): Promise<Breaker> {
  const [row] = await tx
    .select({
      trippedAt: reconcilerBreakers.trippedAt,
      accepting: sql<boolean>`coalesce(${reconcilerBreakers.acceptUntil} > now(), false)`,
    })
    .from(reconcilerBreakers)
    .where(and(eq(reconcilerBreakers.siteId, siteId), eq(reconcilerBreakers.kind, kind)))
    .for("share");
  const trippedAt = row?.trippedAt ?? null;
  if (trippedAt !== null) return { state: "open", trippedAt };
  return { state: row?.accepting === true ? "accepting" : "closed", trippedAt };
}

export const readBreakerState = async (tx: Tx, siteId: SiteId, kind: BreakerKind): Promise<BreakerState> =>
  (await readBreaker(tx, siteId, kind)).state;

export interface Trip {
  readonly siteId: SiteId;
  readonly kind: BreakerKind;
  readonly wouldMove: number;
  readonly moved: number;
  readonly moveLimit: number;
  readonly inService: number;
  readonly nodeIds: readonly NodeId[];
  /**
   * The time at which the site's fleet breaker tripped, if it is open and the new trip shall replace the present one. The caller of `tripBreaker`
   * passes exactly the `trippedAt` that `readBreaker` returned, so `tripBreaker` notices if another hub has tripped the fleet breaker in between.
   */
  readonly follows?: Date | null;
}

/**
 * If the site's fleet breaker is already open, `tripBreaker` changes nothing and returns false, unless `follows` is the time at which the breaker
 * tripped.
 */
export async function tripBreaker(tx: Tx, { follows = null, ...trip }: Trip): Promise<boolean> {
  const rows = await tx
    .insert(reconcilerBreakers)
    .values({ ...trip, nodeIds: [...trip.nodeIds], trippedAt: sql`now()` })
    .onConflictDoUpdate({
      target: [reconcilerBreakers.siteId, reconcilerBreakers.kind],
      set: {
        trippedAt: sql`now()`,
        wouldMove: trip.wouldMove,
        moved: trip.moved,
        moveLimit: trip.moveLimit,
        inService: trip.inService,
        nodeIds: [...trip.nodeIds],
        resetAt: null,
        resetBy: null,
        resetReason: null,
        acceptUntil: null,
      },
      // A JavaScript Date has only milliseconds, so the SQL compares the breaker's `tripped_at` without its microseconds.
      setWhere: sql`date_trunc('milliseconds', ${reconcilerBreakers.trippedAt}) is not distinct from ${follows?.toISOString() ?? null}::timestamptz`,
    })
    .returning({ siteId: reconcilerBreakers.siteId });
  return rows.length > 0;
}

export async function resetBreaker(
  tx: Tx,
  siteId: SiteId,
  kind: BreakerKind,
  reset: { by: string; reason: string; acceptSeconds: number },
): Promise<ReconcilerBreaker | null> {
  const [row] = await tx
    .update(reconcilerBreakers)
    .set({
      trippedAt: null,
      resetAt: sql`now()`,
      resetBy: reset.by,
      resetReason: reset.reason,
      acceptUntil: reset.acceptSeconds > 0 ? sql`now() + make_interval(secs => ${reset.acceptSeconds})` : null,
    })
    .where(
      and(
        eq(reconcilerBreakers.siteId, siteId),
        eq(reconcilerBreakers.kind, kind),
        sql`${reconcilerBreakers.trippedAt} is not null`,
      ),
    )
    .returning();
  return row ?? null;
}

export const listBreakers = (db: Db, reach: Reach = EVERYWHERE): Promise<ReconcilerBreaker[]> =>
  db
    .select()
    .from(reconcilerBreakers)
    .where(isWithin(reach, { site: reconcilerBreakers.siteId }))
    .orderBy(asc(reconcilerBreakers.siteId), asc(reconcilerBreakers.kind));
