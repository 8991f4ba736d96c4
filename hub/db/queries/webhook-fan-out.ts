import { matchesPattern } from "../../../shared/events.ts";
import { and, eq, inArray, lt, sql } from "../orm.ts";
import { type Webhook, webhooks } from "../schema/index.ts";
import type { Db, InTx, Tx } from "../tx.ts";
import { lastSettled, listSettledEvents } from "./domain-events-list.ts";

const FANNED_AT_ONCE = 500;

/** True if the webhook subscribes to the event. A test event reaches only the webhook that is tested. */
export const isTold = (webhook: Pick<Webhook, "id" | "types">, event: { type: string; subject: string }): boolean =>
  event.type === "webhook.tested"
    ? event.subject === `webhooks/${webhook.id}`
    : webhook.types.some((pattern) => matchesPattern(pattern, event.type));

/**
 * Writes the deliveries for new events. Webhooks at the same position in the event list share one step, so a webhook that is far behind does not
 * block the others. The position moves in the transaction that writes the deliveries. Each event thus has one delivery for each webhook, even if
 * several hubs do this or one is killed. False if there was nothing to do.
 */
export async function fanOut(db: Db, inTx: InTx): Promise<boolean> {
  const settled = await lastSettled(db);
  const positions = await db
    .selectDistinct({ at: webhooks.fannedOutTo })
    .from(webhooks)
    .where(and(eq(webhooks.active, true), lt(webhooks.fannedOutTo, settled)));
  let moved = false;
  for (const { at } of positions) moved = (await inTx((tx) => fanOutFrom(tx, at, settled))) || moved;
  return moved;
}

async function fanOutFrom(tx: Tx, position: bigint, settled: bigint): Promise<boolean> {
  const lagging = await tx
    .select()
    .from(webhooks)
    .where(and(eq(webhooks.active, true), eq(webhooks.fannedOutTo, position)))
    .for("no key update", { skipLocked: true });
  if (lagging.length === 0) return false;
  const rows = await listSettledEvents(tx, { after: position, settled, limit: FANNED_AT_ONCE });
  const told = lagging.flatMap((webhook) =>
    rows.filter((row) => isTold(webhook, row)).map((row) => ({ webhook: webhook.id, event: row.seq.toString() })),
  );
  // The values are passed as two arrays, because one parameter for each value would exceed PostgreSQL's limit.
  if (told.length > 0)
    await tx.execute(sql`
      insert into webhook_deliveries (webhook_id, event_seq)
      select * from unnest(${sql.param(told.map(({ webhook }) => webhook))}::uuid[], ${sql.param(told.map(({ event }) => event))}::bigint[])
      on conflict do nothing`);
  const reached = rows.length < FANNED_AT_ONCE ? settled : (rows.at(-1)?.seq ?? settled);
  await tx
    .update(webhooks)
    .set({ fannedOutTo: sql`greatest(${webhooks.fannedOutTo}, ${reached.toString()}::bigint)` })
    .where(
      inArray(
        webhooks.id,
        lagging.map(({ id }) => id),
      ),
    );
  return true;
}
