import { RESTORED } from "../../../shared/health-report.ts";
import type { NodeId, PowerActionId } from "../../../shared/ids.ts";
import type { PowerActionState } from "../../../shared/power.ts";
import { and, count, eq, gt, inArray, ne, sql } from "../orm.ts";
import { type PowerAction, powerActions } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

export type NewPowerAction = Pick<
  typeof powerActions.$inferInsert,
  | "nodeId"
  | "hostname"
  | "generation"
  | "siteId"
  | "maasSystemId"
  | "allocationId"
  | "tenant"
  | "verb"
  | "immediate"
  | "requestedBy"
  | "reason"
  | "bootId"
  | "requesterTenant"
  | "forCleaning"
  | "shutdownAskedAt"
  | "shutdownAcceptedAt"
  | "offAskedAt"
  | "onAskedAt"
  | "offSeenAt"
> & { readonly deadlineSeconds: number };

/** `insertPowerAction` returns null while another action of the node runs. */
export async function insertPowerAction(
  tx: Tx,
  { deadlineSeconds, ...values }: NewPowerAction,
): Promise<PowerAction | null> {
  const [row] = await tx
    .insert(powerActions)
    .values({ ...values, deadlineAt: sql`now() + make_interval(secs => ${deadlineSeconds})` })
    .onConflictDoNothing()
    .returning();
  return row ?? null;
}

export async function readPowerAction(db: Db | Tx, id: PowerActionId): Promise<PowerAction | null> {
  const [row] = await db.select().from(powerActions).where(eq(powerActions.id, id));
  return row ?? null;
}

/** Returns the newest power action of each node that has one. */
export async function newestPowerActions(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, PowerAction>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .selectDistinctOn([powerActions.nodeId])
    .from(powerActions)
    .where(inArray(powerActions.nodeId, [...nodeIds]))
    .orderBy(powerActions.nodeId, sql`${powerActions.requestedAt} desc`);
  return new Map(rows.map((row) => [row.nodeId, row]));
}

/** Counts the power actions that took or take the host's power away. Switching a host on, also for its cleaning, does not wear it out. */
export async function countPowerActions(tx: Tx, nodeId: NodeId, withinSeconds: number): Promise<number> {
  const since = sql`now() - make_interval(secs => ${withinSeconds})`;
  const [row] = await tx
    .select({ actions: count() })
    .from(powerActions)
    .where(and(eq(powerActions.nodeId, nodeId), ne(powerActions.verb, "on"), gt(powerActions.requestedAt, since)));
  return row?.actions ?? 0;
}

/** A power action that a hub has claimed, with the database's time of the claim. */
export interface ClaimedPowerAction {
  readonly action: PowerAction;
  readonly now: Date;
}

export interface PowerClaim {
  readonly most: number;
  /** The most claimed power actions of one site over all hubs, so that a site whose BMCs answer slowly leaves places for the other sites. */
  readonly mostOfSite: number;
  /** The time after which a hub's claim of a power action ends by itself, so that another hub can claim the action. */
  readonly leaseSeconds: number;
}

/** Claims power actions that are due and that no other hub has claimed. */
export async function claimPowerActions(
  tx: Tx,
  { most, mostOfSite, leaseSeconds }: PowerClaim,
): Promise<ClaimedPowerAction[]> {
  // What another hub may have changed is asked once more of the locked row, because PostgreSQL evaluates only the outer conditions after a wait.
  const due = sql`array(select p.id from power_actions p join (
      select id, site_id, row_number() over (partition by site_id order by wake_at, id) as place from power_actions
      where state = 'running' and wake_at <= now() and (claimed_until is null or claimed_until < now())
    ) d on d.id = p.id left join (
      select site_id, count(*) as actions from power_actions where state = 'running' and claimed_until >= now() group by site_id
    ) busy on busy.site_id = d.site_id
    where p.state = 'running' and p.wake_at <= now() and (p.claimed_until is null or p.claimed_until < now())
      and d.place <= ${mostOfSite}::int - coalesce(busy.actions, 0)
    order by p.wake_at limit ${most} for update of p skip locked)`;
  const rows = await tx
    .update(powerActions)
    .set({
      fence: sql`${powerActions.fence} + 1`,
      claimedUntil: sql`now() + make_interval(secs => ${leaseSeconds})`,
    })
    .where(sql`${powerActions.id} = any(${due})`)
    .returning();
  const { rows: clock } = await tx.execute<{ now: string }>(sql`select now() as now`);
  const now = toDate(clock[0]?.now ?? "");
  return rows.map((action) => ({ action, now }));
}

type Claim = Pick<PowerAction, "id" | "fence">;
const isClaimed = ({ id, fence }: Claim) =>
  and(eq(powerActions.id, id), eq(powerActions.fence, fence), eq(powerActions.state, "running"));

/**
 * The kind of request (shutdown, power off or power on) that the hub is about to send to MAAS. The hub records a power request before it sends the
 * request to MAAS, so that the record shows a possible request even if the hub dies in between.
 */
export type Asked = "shutdownAskedAt" | "offAskedAt" | "onAskedAt";

/**
 * Records the power request that the hub is about to send to MAAS; returns false if another hub has claimed the power action or the action has ended,
 * so that the hub must not send the request.
 */
export async function noteAsked(tx: Tx, claim: Claim, asked: Asked): Promise<boolean> {
  const rows = await tx
    .update(powerActions)
    .set({ [asked]: sql`now()` })
    .where(isClaimed(claim))
    .returning({ id: powerActions.id });
  return rows.length > 0;
}

/** Notes that MAAS accepted the shutdown. */
export async function noteShutdownAccepted(tx: Tx, claim: Claim): Promise<void> {
  await tx.update(powerActions).set({ shutdownAcceptedAt: sql`now()` }).where(isClaimed(claim));
}

/** Ends the hub's claim of a power action that still has to wait, so that a hub continues the action after `seconds`. */
export async function notePowerWait(
  tx: Tx,
  claim: Claim,
  { reason, seconds, offSeen }: { readonly reason: string; readonly seconds: number; readonly offSeen: boolean },
): Promise<void> {
  await tx
    .update(powerActions)
    .set({
      waitReason: reason,
      wakeAt: sql`now() + make_interval(secs => ${seconds})`,
      claimedUntil: null,
      ...(offSeen ? { offSeenAt: sql`coalesce(${powerActions.offSeenAt}, now())` } : {}),
    })
    .where(isClaimed(claim));
}

export type PowerEnd = Pick<PowerAction, "errorCode" | "errorMessage"> & {
  readonly state: Exclude<PowerActionState, "running">;
};

/**
 * Ends a power action: with a `fence` only if no hub has claimed the action since the claim with this fence, and without a `fence` whichever hub has
 * claimed it. `endPowerAction` returns null if the power action has already ended or, with a `fence`, if another hub has claimed it since.
 */
export async function endPowerAction(
  tx: Tx,
  action: Pick<PowerAction, "id"> & { readonly fence?: number },
  end: PowerEnd,
): Promise<PowerAction | null> {
  const { id, fence } = action;
  const [row] = await tx
    .update(powerActions)
    .set({ ...end, waitReason: null, claimedUntil: null, finishedAt: sql`now()` })
    .where(
      fence === undefined ? and(eq(powerActions.id, id), eq(powerActions.state, "running")) : isClaimed({ id, fence }),
    )
    .returning();
  return row ?? null;
}

/** Ends all running power actions after a restore of the database, because nobody knows whose hosts they would switch on or off. */
export async function failRunningPowerActions(tx: Tx, errorMessage: string): Promise<void> {
  await tx
    .update(powerActions)
    .set({
      state: "failed",
      errorCode: "machine_not_usable",
      errorMessage,
      waitReason: null,
      claimedUntil: null,
      finishedAt: sql`now()`,
    })
    .where(eq(powerActions.state, "running"));
}

/** The time after which the hub tries again to switch on a host for its cleaning. A BMC may lock an account after several refused logins (decision M19). */
const CLEANING_AGAIN_SECONDS = 1800;

/**
 * Returns the nodes whose allocation is ending and whose machine may be off or going off by request, because the newest power action did not bring
 * the host back. A host must be powered on so that the hub can clean it after its tenant. `perhapsOffAlthoughEnding` leaves out hosts that may have
 * another tenant since a restore of the database, and hosts that somebody repairs.
 */
export async function perhapsOffAlthoughEnding(
  db: Db | Tx,
  most: number,
  nodeId: NodeId | null = null,
): Promise<NodeId[]> {
  const { rows } = await db.execute<{ node_id: NodeId }>(sql`
    select a.node_id from allocations a join nodes n on n.id = a.node_id
      join lateral (select p.verb, p.state, p.generation, p.for_cleaning, p.finished_at from power_actions p
        where p.node_id = a.node_id order by p.requested_at desc limit 1) p on true
    where a.status = 'ending' and p.generation = n.generation and not (p.state = 'done' and p.verb <> 'off')
      and (not p.for_cleaning or p.finished_at < now() - make_interval(secs => ${CLEANING_AGAIN_SECONDS}))
      and n.status in ('active', 'offline', 'quarantined')
      and not exists (select from node_health_overrides o where o.node_id = n.id and o.source = ${RESTORED})
      and not exists (select from repair_cases c where c.node_id = n.id and c.state = 'claimed')
      and (${nodeId}::uuid is null or n.id = ${nodeId}::uuid)
    order by a.node_id limit ${most}`);
  return rows.map(({ node_id }) => node_id);
}
