import { and, desc, eq, lt, sql } from "drizzle-orm";
import { matchesPattern } from "../../../shared/events.ts";
import { domainEvents, type Webhook, type WebhookDelivery, webhookDeliveries, webhooks } from "../schema/index.ts";
import type { Db, InTx, Tx } from "../tx.ts";
import { lastSettled, listDomainEvents } from "./domain-events-list.ts";

const FANNED_AT_ONCE = 500;

/** Whether the webhook is told of the event; a test reaches only the one that is tested. */
const isTold = (webhook: Pick<Webhook, "id" | "types">, event: { type: string; subject: string }): boolean =>
  event.type === "webhook.tested"
    ? event.subject === `webhooks/${webhook.id}`
    : webhook.types.some((pattern) => matchesPattern(pattern, event.type));

/**
 * Writes the deliveries of the events that came since, for one webhook that lags behind. The position moves in the same transaction, so however many hubs
 * do this, and whenever one is killed, each event has one delivery. False when there was nothing to do.
 */
export async function fanOut(db: Db, inTx: InTx): Promise<boolean> {
  const settled = await lastSettled(db);
  return inTx(async (tx) => {
    const [webhook] = await tx
      .select()
      .from(webhooks)
      .where(and(eq(webhooks.active, true), lt(webhooks.fannedOutTo, settled)))
      .orderBy(webhooks.fannedOutTo)
      .limit(1)
      .for("no key update", { skipLocked: true });
    if (webhook === undefined) return false;
    const rows = await listDomainEvents(db, { after: webhook.fannedOutTo, limit: FANNED_AT_ONCE });
    const told = rows.filter((row) => isTold(webhook, row));
    if (told.length > 0)
      await tx
        .insert(webhookDeliveries)
        .values(told.map((row) => ({ webhookId: webhook.id, eventSeq: row.seq })))
        .onConflictDoNothing();
    const reached = rows.length < FANNED_AT_ONCE ? settled : (rows.at(-1)?.seq ?? settled);
    await tx
      .update(webhooks)
      .set({ fannedOutTo: sql`greatest(${webhooks.fannedOutTo}, ${reached.toString()}::bigint)` })
      .where(eq(webhooks.id, webhook.id));
    return true;
  });
}

export interface ClaimedDelivery {
  readonly delivery: WebhookDelivery;
  readonly webhook: Webhook;
}

/**
 * Takes due deliveries, a few of each webhook, so that one that answers slowly holds up none of the others. The attempt is counted when it is taken: one
 * whose hub was killed is an attempt as well, and is made again once its lease is over.
 */
export async function claimDeliveries(
  db: Db,
  { perWebhook, leaseSeconds }: { perWebhook: number; leaseSeconds: number },
): Promise<ClaimedDelivery[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    update webhook_deliveries set attempts = attempts + 1, lease_until = now() + make_interval(secs => ${leaseSeconds})
    where id in (
      select due.id from webhooks w cross join lateral (
        select d.id from webhook_deliveries d
        where d.webhook_id = w.id and d.state = 'pending' and d.next_attempt_at <= now()
          and (d.lease_until is null or d.lease_until <= now())
        order by d.next_attempt_at, d.id
        limit greatest(0, ${perWebhook} - (
          select count(*) from webhook_deliveries held
          where held.webhook_id = w.id and held.state = 'pending' and held.lease_until > now()))
        for update skip locked) due
      where w.active)
    returning id::text as id`);
  if (rows.length === 0) return [];
  const ids = rows.map((row) => row.id);
  return db
    .select({ delivery: webhookDeliveries, webhook: webhooks })
    .from(webhookDeliveries)
    .innerJoin(webhooks, eq(webhooks.id, webhookDeliveries.webhookId))
    .where(sql`${webhookDeliveries.id} = any(${sql.param(ids)}::bigint[])`);
}

export type DeliveryEnding = { readonly lastStatus: number | null; readonly lastError: string | null } & (
  | { readonly state: "delivered" | "dead" }
  | { readonly state: "pending"; readonly inSeconds: number }
);

/** Only for the attempt that is told: one that was taken over meanwhile ends nothing. */
export async function endAttempt(tx: Tx, delivery: WebhookDelivery, ending: DeliveryEnding): Promise<boolean> {
  const ended = ending.state !== "pending";
  const rows = await tx
    .update(webhookDeliveries)
    .set({
      state: ending.state,
      leaseUntil: null,
      lastStatus: ending.lastStatus,
      lastError: ending.lastError?.slice(0, 300) ?? null,
      endedAt: ended ? sql`now()` : null,
      ...(ending.state === "pending" ? { nextAttemptAt: sql`now() + make_interval(secs => ${ending.inSeconds})` } : {}),
    })
    .where(
      and(
        eq(webhookDeliveries.id, delivery.id),
        eq(webhookDeliveries.state, "pending"),
        eq(webhookDeliveries.attempts, delivery.attempts),
      ),
    )
    .returning({ id: webhookDeliveries.id });
  return rows.length > 0;
}

export async function disableWebhook(tx: Tx, id: string, reason: string): Promise<void> {
  await tx
    .update(webhooks)
    .set({ active: false, disabledReason: reason.slice(0, 300), updatedAt: sql`now()` })
    .where(eq(webhooks.id, id));
}

export async function readWebhook(db: Db | Tx, id: string): Promise<Webhook | null> {
  const [row] = await db.select().from(webhooks).where(eq(webhooks.id, id));
  return row ?? null;
}

/** Deliveries that are not over, or failed for good, by webhook. */
export async function countOpen(db: Db | Tx): Promise<ReadonlyMap<string, { pending: number; dead: number }>> {
  const { rows } = await db.execute<{ id: string; pending: number; dead: number }>(sql`
    select webhook_id::text as id, count(*) filter (where state = 'pending')::int as pending,
      count(*) filter (where state = 'dead')::int as dead
    from webhook_deliveries where state <> 'delivered' group by webhook_id`);
  return new Map(rows.map(({ id, pending, dead }) => [id, { pending, dead }]));
}

export async function listDeliveries(
  db: Db,
  webhookId: string,
  page: { state: WebhookDelivery["state"] | undefined; before: bigint | null; limit: number },
) {
  return db
    .select({ delivery: webhookDeliveries, event: domainEvents })
    .from(webhookDeliveries)
    .leftJoin(domainEvents, eq(domainEvents.seq, webhookDeliveries.eventSeq))
    .where(
      and(
        eq(webhookDeliveries.webhookId, webhookId),
        page.state === undefined ? undefined : eq(webhookDeliveries.state, page.state),
        page.before === null ? undefined : lt(webhookDeliveries.id, page.before),
      ),
    )
    .orderBy(desc(webhookDeliveries.id))
    .limit(page.limit);
}

/** To be delivered anew, with all its attempts: those that failed for good, or one whatever became of it. Returns how many. */
export async function replayDeliveries(tx: Tx, webhookId: string, which: "dead" | bigint): Promise<number> {
  const rows = await tx
    .update(webhookDeliveries)
    .set({ state: "pending", attempts: 0, nextAttemptAt: sql`now()`, leaseUntil: null, endedAt: null })
    .where(
      and(
        eq(webhookDeliveries.webhookId, webhookId),
        which === "dead" ? eq(webhookDeliveries.state, "dead") : eq(webhookDeliveries.id, which),
      ),
    )
    .returning({ id: webhookDeliveries.id });
  return rows.length;
}

/** Everything after the position once more, also what was delivered: the deliveries are forgotten, and written again. */
export async function replayFrom(tx: Tx, webhookId: string, position: bigint): Promise<number> {
  const rows = await tx
    .delete(webhookDeliveries)
    .where(
      and(
        eq(webhookDeliveries.webhookId, webhookId),
        sql`${webhookDeliveries.eventSeq} > ${position.toString()}::bigint`,
      ),
    )
    .returning({ id: webhookDeliveries.id });
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`least(${webhooks.fannedOutTo}, ${position.toString()}::bigint)` })
    .where(eq(webhooks.id, webhookId));
  return rows.length;
}
