import { eq, inArray, sql } from "../orm.ts";
import { type Webhook, webhooks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { given } from "./row-versions.ts";

/** Every transaction locks a webhook before the webhook's deliveries, because a deletion of the webhook locks them in the same order. */
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
 * The caller of `changeWebhook` has locked the webhook. When a person switches a webhook on or off, `changeWebhook` clears the reason for which the
 * hub had disabled the webhook.
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

export async function deleteWebhook(tx: Tx, id: string): Promise<void> {
  await tx.delete(webhooks).where(eq(webhooks.id, id));
}

type OpenDeliveries = { readonly pending: number; readonly dead: number };

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
 * Records for webhooks that the hub has written the deliveries of all events up to the sequence number `position`. A webhook whose recorded sequence
 * number is already higher than `position` keeps its number.
 */
export async function advanceFanOut(tx: Tx, ids: readonly string[], position: bigint): Promise<void> {
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`greatest(${webhooks.fannedOutTo}, ${position.toString()}::bigint)` })
    .where(inArray(webhooks.id, [...ids]));
}

/** Moves the webhook's position in the list of events back to the sequence number `position`, so that later events get new deliveries. */
export async function rewindFanOut(tx: Tx, id: string, position: bigint): Promise<void> {
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`least(${webhooks.fannedOutTo}, ${position.toString()}::bigint)` })
    .where(eq(webhooks.id, id));
}
