import { lockUntilCommit } from "../advisory-locks.ts";
import { and, desc, eq, lt, sql } from "../orm.ts";
import { domainEvents, type Webhook, type WebhookDelivery, webhookDeliveries, webhooks } from "../schema/index.ts";
import type { Db, InTx, Tx } from "../tx.ts";

export interface ClaimedDelivery {
  readonly delivery: WebhookDelivery;
  readonly webhook: Webhook;
}

/**
 * Takes webhook deliveries that are due, a few of each webhook, so that a slow receiver does not delay other receivers. A hub's claim of a webhook
 * delivery counts as an attempt, even if the hub is killed; the next attempt follows after the lease has expired.
 */
export function claimDeliveries(
  inTx: InTx,
  { perWebhook, leaseSeconds }: { perWebhook: number; leaseSeconds: number },
): Promise<ClaimedDelivery[]> {
  return inTx(async (tx) => {
    // The hub takes the advisory lock in an SQL statement of its own, so that the following statement sees which webhook deliveries another hub has
    // just claimed.
    await lockUntilCommit(tx, "webhook_claims");
    // The SQL update of `claimDeliveries` selects the deliveries by an array of ids. With a join in place of the array of ids, PostgreSQL's planner
    // would not know that the ids are few, and would read all deliveries.
    const { rows } = await tx.execute<{ id: string }>(sql`
      update webhook_deliveries set attempts = attempts + 1, claim = claim + 1,
        lease_until = now() + make_interval(secs => ${leaseSeconds})
      where id = any(array(
        select due.id from webhooks w cross join lateral (
          select d.id from webhook_deliveries d
          where d.webhook_id = w.id and d.state = 'pending' and d.next_attempt_at <= now()
            and (d.lease_until is null or d.lease_until <= now())
          order by d.next_attempt_at, d.id
          limit greatest(0, ${perWebhook} - (
            select count(*) from webhook_deliveries held
            where held.webhook_id = w.id and held.state = 'pending' and held.lease_until > now()))
          for update skip locked) due
        where w.active))
      returning id::text as id`);
    if (rows.length === 0) return [];
    const ids = rows.map((row) => row.id);
    return tx
      .select({ delivery: webhookDeliveries, webhook: webhooks })
      .from(webhookDeliveries)
      .innerJoin(webhooks, eq(webhooks.id, webhookDeliveries.webhookId))
      .where(sql`${webhookDeliveries.id} = any(${sql.param(ids)}::bigint[])`);
  });
}

export type DeliveryEnding = { readonly lastStatus: number | null; readonly lastError: string | null } & (
  | { readonly state: "delivered" | "dead" }
  | { readonly state: "pending"; readonly inSeconds: number }
);

/** `endAttempt` returns false if the webhook delivery was claimed again or replayed since the attempt began. */
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
    .where(isHeld(delivery))
    .returning({ id: webhookDeliveries.id });
  return rows.length > 0;
}

/** A delivery that the hub puts back loses no attempt, because the receiver of the webhook did not cause the failure. */
export async function putBack(
  tx: Tx,
  delivery: WebhookDelivery,
  { inSeconds, why }: { inSeconds: number; why: string },
): Promise<void> {
  await tx
    .update(webhookDeliveries)
    .set({
      attempts: sql`${webhookDeliveries.attempts} - 1`,
      leaseUntil: null,
      lastError: why,
      nextAttemptAt: sql`now() + make_interval(secs => ${inSeconds})`,
    })
    .where(isHeld(delivery));
}

const isHeld = (delivery: WebhookDelivery) =>
  and(
    eq(webhookDeliveries.id, delivery.id),
    eq(webhookDeliveries.state, "pending"),
    eq(webhookDeliveries.claim, delivery.claim),
  );

/** `insertDeliveries` leaves an existing webhook delivery as it is. */
export async function insertDeliveries(
  tx: Tx,
  told: readonly { readonly webhook: string; readonly event: string }[],
): Promise<void> {
  if (told.length === 0) return;
  // The SQL of `insertDeliveries` takes two arrays, because one SQL parameter for each value would exceed PostgreSQL's limit of parameters.
  await tx.execute(sql`
    insert into webhook_deliveries (webhook_id, event_seq)
    select * from unnest(${sql.param(told.map(({ webhook }) => webhook))}::uuid[], ${sql.param(told.map(({ event }) => event))}::bigint[])
    on conflict do nothing`);
}

export async function deleteDeliveriesAfter(tx: Tx, webhookId: string, position: bigint): Promise<void> {
  await tx
    .delete(webhookDeliveries)
    .where(
      and(
        eq(webhookDeliveries.webhookId, webhookId),
        sql`${webhookDeliveries.eventSeq} > ${position.toString()}::bigint`,
      ),
    );
}

/** Makes webhook deliveries pending with all their attempts: every delivery that failed for good, or one delivery in any state. */
export async function replayDeliveries(tx: Tx, webhookId: string, which: "dead" | bigint): Promise<number> {
  const rows = await tx
    .update(webhookDeliveries)
    .set({
      state: "pending",
      attempts: 0,
      claim: sql`${webhookDeliveries.claim} + 1`,
      nextAttemptAt: sql`now()`,
      leaseUntil: null,
      endedAt: null,
    })
    .where(
      and(
        eq(webhookDeliveries.webhookId, webhookId),
        which === "dead" ? eq(webhookDeliveries.state, "dead") : eq(webhookDeliveries.id, which),
      ),
    )
    .returning({ id: webhookDeliveries.id });
  return rows.length;
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
