import { matchesPattern } from "../../../shared/events.ts";
import { FREQUENT } from "../../../shared/operation-events.ts";
import { and, eq, lt, sql } from "../orm.ts";
import { type Webhook, webhooks } from "../schema/index.ts";
import type { Db, InTx, Tx } from "../tx.ts";
import { lastSettled, listSettledEvents } from "./domain-events-list.ts";
import { EVERYWHERE } from "./reach.ts";
import { deleteDeliveriesAfter, insertDeliveries } from "./webhook-deliveries.ts";
import { advanceFanOut, rewindFanOut } from "./webhooks.ts";

const FANNED_AT_ONCE = 500;

/** A test event reaches only the webhook that a person tests. */
const isTold = (webhook: Pick<Webhook, "id" | "types">, event: { type: string; subject: string }): boolean =>
  event.type === "webhook.tested"
    ? event.subject === `webhooks/${webhook.id}`
    : webhook.types.some(
        (pattern) => matchesPattern(pattern, event.type) && !(pattern === "*" && FREQUENT.has(event.type)),
      );

/**
 * Webhooks with the same position in the event list share one transaction, so a webhook that is far behind does not block other webhooks. One
 * transaction writes a webhook's deliveries and the position up to which the webhook has got its events. Each event has exactly one delivery for each
 * webhook, even if several hubs run `fanOut` or a hub is killed. `fanOut` returns false if no webhook had new events.
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
  const rows = await listSettledEvents(tx, { after: position, settled, limit: FANNED_AT_ONCE, reach: EVERYWHERE });
  const told = lagging.flatMap((webhook) =>
    rows.filter((row) => isTold(webhook, row)).map((row) => ({ webhook: webhook.id, event: row.seq.toString() })),
  );
  await insertDeliveries(tx, told);
  const reached = rows.length < FANNED_AT_ONCE ? settled : (rows.at(-1)?.seq ?? settled);
  await advanceFanOut(
    tx,
    lagging.map(({ id }) => id),
    reached,
  );
  return true;
}

/**
 * Sends a webhook all events with a sequence number above `position`, even events that the webhook has already got. `replayFrom` deletes the
 * deliveries of events above `position`, and `fanOut` later writes new deliveries for the events.
 */
export async function replayFrom(tx: Tx, webhook: Webhook, position: bigint): Promise<number> {
  await deleteDeliveriesAfter(tx, webhook.id, position);
  await rewindFanOut(tx, webhook.id, position);
  const settled = await lastSettled(tx);
  const { rows } = await tx.execute<{ type: string; subject: string; events: number }>(sql`
    select type, case when type = 'webhook.tested' then subject else '' end as subject, count(*)::int as events
    from domain_events where seq > ${position.toString()}::bigint and seq <= ${settled.toString()}::bigint group by 1, 2`);
  return rows.reduce((sum, row) => sum + (isTold(webhook, row) ? row.events : 0), 0);
}
