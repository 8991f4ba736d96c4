import { and, desc, eq, lt, sql } from "../orm.ts";
import { domainEvents, type Webhook, type WebhookDelivery, webhookDeliveries, webhooks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { lastSettled } from "./domain-events-list.ts";
import { given } from "./row-versions.ts";
import { isTold } from "./webhook-fan-out.ts";

/**
 * Locks the webhook until the transaction ends; null if it does not exist. The webhook is locked before its deliveries, in the same order as when it
 * is deleted.
 */
export async function lockWebhook(tx: Tx, id: string): Promise<Webhook | null> {
  const [row] = await tx.select().from(webhooks).where(eq(webhooks.id, id)).for("no key update");
  return row ?? null;
}

export async function disableWebhook(tx: Tx, id: string, reason: string): Promise<void> {
  await tx
    .update(webhooks)
    .set({
      active: false,
      disabledReason: reason.slice(0, 300),
      version: sql`${webhooks.version} + 1`,
      updatedAt: sql`now()`,
    })
    .where(eq(webhooks.id, id));
}

export async function readWebhook(db: Db | Tx, id: string): Promise<Webhook | null> {
  const [row] = await db.select().from(webhooks).where(eq(webhooks.id, id));
  return row ?? null;
}

export async function insertWebhook(
  tx: Tx,
  webhook: Pick<Webhook, "id" | "url" | "types" | "description" | "fannedOutTo">,
): Promise<Webhook> {
  const [row] = await tx.insert(webhooks).values(webhook).returning();
  if (row === undefined) throw new Error("no webhook was made");
  return row;
}

/** Changes a webhook that the caller has locked. Switching a webhook on or off clears the reason why the hub had disabled it. */
export async function changeWebhook(
  tx: Tx,
  { id, version }: Webhook,
  change: { readonly [K in "url" | "types" | "description" | "active"]?: Webhook[K] | undefined },
): Promise<Webhook> {
  const [row] = await tx
    .update(webhooks)
    .set({
      ...given(change),
      ...(change.active === undefined ? {} : { disabledReason: null }),
      version: version + 1,
      updatedAt: sql`now()`,
    })
    .where(eq(webhooks.id, id))
    .returning();
  if (row === undefined) throw new Error("a locked webhook was not changed");
  return row;
}

/** Deletes the webhook, and its deliveries by cascade. */
export async function deleteWebhook(tx: Tx, id: string): Promise<void> {
  await tx.delete(webhooks).where(eq(webhooks.id, id));
}

type OpenDeliveries = { readonly pending: number; readonly dead: number };

/** For each of these webhooks, the number of deliveries that are pending and that failed for good. */
export async function countOpen(db: Db | Tx, ids: readonly string[]): Promise<ReadonlyMap<string, OpenDeliveries>> {
  const [only] = ids;
  if (only === undefined) return new Map();
  // With a single webhook the statement contains its id, so that the planner can estimate the number of deliveries.
  const id = ids.length === 1 ? sql`${only}::uuid` : sql`w.id`;
  const count = (state: "pending" | "dead") =>
    sql`(select count(*) from webhook_deliveries d where d.webhook_id = ${id} and d.state = ${sql.raw(`'${state}'`)})::int`;
  const { rows } = await db.execute<{ id: string } & OpenDeliveries>(sql`
    select w.id::text as id, ${count("pending")} as pending, ${count("dead")} as dead from webhooks w
    where w.id = any(${sql.param([...ids])}::uuid[])`);
  return new Map(rows.map(({ id: of, pending, dead }) => [of, { pending, dead }]));
}

/** Ordered by creation. `after` is the creation time in microseconds and the id of the last webhook of the previous page. */
export async function listWebhooksAfter(
  db: Db,
  after: readonly string[] | null,
  most: number,
): Promise<{ webhook: Webhook; madeAt: string }[]> {
  const made = sql<string>`(extract(epoch from ${webhooks.createdAt}) * 1000000)::bigint`;
  return db
    .select({ webhook: webhooks, madeAt: sql<string>`${made}::text` })
    .from(webhooks)
    .where(after === null ? undefined : sql`(${made}, ${webhooks.id}) > (${after[0]}::bigint, ${after[1]}::uuid)`)
    .orderBy(made, webhooks.id)
    .limit(most);
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

/** Makes deliveries pending again with all their attempts: the ones that failed for good, or a single one in any state. Returns how many. */
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

/**
 * Repeats every event after the position, including delivered ones: the deliveries are deleted and will be written again. Returns the number of
 * events that the webhook will be sent.
 */
export async function replayFrom(tx: Tx, webhook: Webhook, position: bigint): Promise<number> {
  const after = position.toString();
  await tx
    .delete(webhookDeliveries)
    .where(and(eq(webhookDeliveries.webhookId, webhook.id), sql`${webhookDeliveries.eventSeq} > ${after}::bigint`));
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`least(${webhooks.fannedOutTo}, ${after}::bigint)` })
    .where(eq(webhooks.id, webhook.id));
  const settled = await lastSettled(tx);
  const { rows } = await tx.execute<{ type: string; subject: string; events: number }>(sql`
    select type, case when type = 'webhook.tested' then subject else '' end as subject, count(*)::int as events
    from domain_events where seq > ${after}::bigint and seq <= ${settled.toString()}::bigint group by 1, 2`);
  return rows.reduce((sum, row) => sum + (isTold(webhook, row) ? row.events : 0), 0);
}
