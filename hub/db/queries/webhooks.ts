import { eq, inArray, sql } from "../orm.ts";
import { type Webhook, webhooks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { given } from "./row-versions.ts";

/**
 * Locks the webhook until the transaction ends, and returns null if the webhook does not exist. Every transaction locks a webhook before the
 * webhook's deliveries, because a deletion of the webhook also locks them in that order.
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

/**
 * Changes a webhook that the caller has locked. When a person switches a webhook on or off, `changeWebhook` clears the reason for which the hub had
 * disabled the webhook.
 */
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

/** Deletes a webhook, whose deliveries PostgreSQL also deletes by cascade. */
export async function deleteWebhook(tx: Tx, id: string): Promise<void> {
  await tx.delete(webhooks).where(eq(webhooks.id, id));
}

type OpenDeliveries = { readonly pending: number; readonly dead: number };

/** Returns, for each of the given webhooks, the number of pending deliveries and the number of deliveries that failed for good. */
export async function countOpen(db: Db | Tx, ids: readonly string[]): Promise<ReadonlyMap<string, OpenDeliveries>> {
  const [only] = ids;
  if (only === undefined) return new Map();
  // For a single webhook, the SQL contains the webhook's id, so that PostgreSQL's planner can estimate the number of deliveries.
  const id = ids.length === 1 ? sql`${only}::uuid` : sql`w.id`;
  const count = (state: "pending" | "dead") =>
    sql`(select count(*) from webhook_deliveries d where d.webhook_id = ${id} and d.state = ${sql.raw(`'${state}'`)})::int`;
  const { rows } = await db.execute<{ id: string } & OpenDeliveries>(sql`
    select w.id::text as id, ${count("pending")} as pending, ${count("dead")} as dead from webhooks w
    where w.id = any(${sql.param([...ids])}::uuid[])`);
  return new Map(rows.map(({ id: of, pending, dead }) => [of, { pending, dead }]));
}

/**
 * Lists webhooks in the order of their creation. The argument `after` is the creation time in microseconds and the id of the last webhook of the
 * previous page.
 */
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

/**
 * Records for the given webhooks that all events up to the sequence number `position` have their deliveries. If the recorded sequence number of a
 * webhook is already higher than `position`, the webhook keeps its higher number.
 */
export async function advanceFanOut(tx: Tx, ids: readonly string[], position: bigint): Promise<void> {
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`greatest(${webhooks.fannedOutTo}, ${position.toString()}::bigint)` })
    .where(inArray(webhooks.id, [...ids]));
}

/** Sets the webhook back to the sequence number `position`, so that the events above that number get their deliveries again. */
export async function rewindFanOut(tx: Tx, id: string, position: bigint): Promise<void> {
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`least(${webhooks.fannedOutTo}, ${position.toString()}::bigint)` })
    .where(eq(webhooks.id, id));
}
