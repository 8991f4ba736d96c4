import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";

const outboxLag = gauge({
  name: "muster_outbox_lag_seconds",
  help: "Age of the oldest domain event that has not been prepared for every active webhook; 0 if none waits or no webhook is active.",
  labels: {},
  told: "database",
});
const deliveries = gauge({
  name: "muster_webhook_deliveries",
  help: "Deliveries of events to webhooks that wait (pending) or were given up (dead).",
  labels: { state: ["pending", "dead"] },
  told: "database",
});
const oldest = gauge({
  name: "muster_webhook_oldest_pending_seconds",
  help: "Age of the oldest delivery that waits, over all active webhooks; 0 if none waits.",
  labels: {},
  told: "database",
});
const disabled = gauge({
  name: "muster_webhooks_disabled",
  help: "Webhooks to which the hub has stopped sending events because their receiver refused.",
  labels: {},
  told: "database",
});

type Row = { lag: number | null; pending: number; dead: number; oldest: number | null; disabled: number };

export const eventGauges = gaugeGroup({
  name: "events",
  families: [outboxLag, deliveries, oldest, disabled],
  collect: async (db) => {
    const { rows } = await db.execute<Row>(sql`
      select (select extract(epoch from now() - occurred_at)::float8 from domain_events
          where seq > (select min(fanned_out_to) from webhooks where active) order by seq limit 1) as lag,
        (select count(*)::int from webhook_deliveries where state = 'pending') as pending,
        (select count(*)::int from webhook_deliveries where state = 'dead') as dead,
        (select extract(epoch from now() - min(d.created_at))::float8 from webhook_deliveries d
          join webhooks w on w.id = d.webhook_id and w.active where d.state = 'pending') as oldest,
        (select count(*)::int from webhooks where disabled_reason is not null) as disabled`);
    const [row] = rows;
    if (row === undefined) return;
    outboxLag.show([{ labels: {}, value: row.lag ?? 0 }]);
    deliveries.show([
      { labels: { state: "pending" }, value: row.pending },
      { labels: { state: "dead" }, value: row.dead },
    ]);
    oldest.show([{ labels: {}, value: row.oldest ?? 0 }]);
    disabled.show([{ labels: {}, value: row.disabled }]);
  },
});
