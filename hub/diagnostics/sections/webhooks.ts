import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { DELIVERY_STATES } from "../../../shared/api/webhooks.ts";
import { sql } from "../../db/orm.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_WEBHOOKS = 50;
const MOST_FAILURES = 50;

const Webhook = z.strictObject({
  id: z.uuid(),
  /** The origin of the webhook's URL, without its path and query, which often contain the receiver's key. */
  origin: z.string(),
  types: z.array(z.string()),
  active: z.boolean(),
  disabled_reason: z.string().nullable(),
  pending: z.int(),
  delivered: z.int(),
  dead: z.int(),
  oldest_pending_at: Timestamp.nullable(),
  /** The number of events for which the hub has not yet written the rows of the webhook's deliveries. */
  events_behind: z.number(),
});
const Failure = z.strictObject({
  id: z.string(),
  webhook_id: z.uuid(),
  event_type: z.string().nullable(),
  state: z.enum(DELIVERY_STATES),
  attempts: z.int(),
  last_status: z.int().nullable(),
  last_error: z.string().nullable(),
  next_attempt_at: Timestamp.nullable(),
  created_at: Timestamp,
});

async function readWebhooks(tx: Tx) {
  const { rows } = await tx.execute<Omit<z.input<typeof Webhook>, "origin"> & { url: string; of: number }>(sql`
    with counted as (
      select webhook_id, (count(*) filter (where state = 'pending'))::int as pending,
        (count(*) filter (where state = 'delivered'))::int as delivered, (count(*) filter (where state = 'dead'))::int as dead,
        min(created_at) filter (where state = 'pending') as oldest from webhook_deliveries group by 1),
    newest as (select coalesce(max(seq), 0) as seq from domain_events)
    select w.id, w.url, w.types, w.active, w.disabled_reason, coalesce(c.pending, 0) as pending,
      coalesce(c.delivered, 0) as delivered, coalesce(c.dead, 0) as dead, ${iso("c.oldest")} as oldest_pending_at,
      greatest(0, n.seq - w.fanned_out_to)::float8 as events_behind, ${OF}
    from webhooks w cross join newest n left join counted c on c.webhook_id = w.id
    order by coalesce(c.dead, 0) + coalesce(c.pending, 0) desc, w.id limit ${MOST_WEBHOOKS}`);
  const { shown, leftOut } = bounded("webhooks", rows);
  return { shown: shown.map(({ url, ...row }) => ({ ...row, origin: new URL(url).origin })), leftOut };
}

async function readFailures(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Failure> & { of: number }>(sql`
    select d.id::text as id, d.webhook_id, e.type as event_type, d.state, d.attempts, d.last_status, d.last_error,
      case when d.state = 'pending' then ${iso("d.next_attempt_at")} end as next_attempt_at,
      ${iso("d.created_at")} as created_at, ${OF}
    from webhook_deliveries d left join domain_events e on e.seq = d.event_seq
    where d.state <> 'delivered' and d.last_error is not null order by d.id desc limit ${MOST_FAILURES}`);
  return bounded("failures", rows);
}

export const webhooks = databaseSection({
  name: "webhooks",
  about: "Webhooks with their deliveries counted, and the latest that failed",
  data: z.strictObject({ webhooks: z.array(Webhook), failures: z.array(Failure) }),
  read: async (tx) => {
    const all = await readWebhooks(tx);
    const failures = await readFailures(tx);
    return {
      data: { webhooks: all.shown, failures: failures.shown },
      leftOut: [...all.leftOut, ...failures.leftOut],
    };
  },
});
