import { DELIVERY_STATES } from "../../../shared/api/webhooks.ts";
import { bigint, bigserial, boolean, check, index, integer, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, createdAt, oneOf, updatedAt } from "./columns.ts";

/** The webhooks that subscribe to domain events (decision P5). A webhook's secret is in the secret store, under the webhook's id. */
export const webhooks = pgTable("webhooks", {
  id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
  url: text("url").notNull(),
  description: text("description").notNull().default(""),
  types: text("types").array().notNull(),
  active: boolean("active").notNull().default(true),
  /**
   * The reason why the hub stopped sending events to the webhook. `disabled_reason` is null while the hub sends events, and also if a person switched
   * the webhook off.
   */
  disabledReason: text("disabled_reason"),
  /** The sequence number of the last event for which the hub has written the webhook's deliveries. */
  fannedOutTo: bigint("fanned_out_to", { mode: "bigint" }).notNull(),
  /**
   * The version of the webhook's row, which rises when a person changes the webhook and when the hub disables it. The hub raises `fanned_out_to` with
   * every event, without a new version of the webhook's row.
   */
  version: integer("version").notNull().default(1),
  createdAt: createdAt(),
  updatedAt: updatedAt(),
});
export type Webhook = typeof webhooks.$inferSelect;

export const webhookDeliveries = pgTable(
  "webhook_deliveries",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    webhookId: uuid("webhook_id")
      .notNull()
      .references(() => webhooks.id, { onDelete: "cascade" }),
    eventSeq: bigint("event_seq", { mode: "bigint" }).notNull(),
    state: text("state", { enum: DELIVERY_STATES }).notNull().default("pending"),
    /** A replay of a webhook delivery sets the number of its attempts back to zero. */
    attempts: integer("attempts").notNull().default(0),
    /**
     * The number of the present claim of the webhook delivery by a hub; each new claim has a higher number. If a hub's claim number is older than the
     * delivery's, another hub has claimed the webhook delivery or the delivery was replayed, so the hub no longer has it.
     */
    claim: integer("claim").notNull().default(0),
    nextAttemptAt: at("next_attempt_at").notNull().default(sql`now()`),
    leaseUntil: at("lease_until"),
    lastStatus: integer("last_status"),
    lastError: text("last_error"),
    createdAt: createdAt(),
    endedAt: at("ended_at"),
  },
  (t) => [
    check("webhook_deliveries_state_check", oneOf("state", DELIVERY_STATES)),
    uniqueIndex("webhook_deliveries_event_key").on(t.webhookId, t.eventSeq),
    index("webhook_deliveries_due_idx").on(t.webhookId, t.nextAttemptAt, t.id).where(sql`"state" = 'pending'`),
    index("webhook_deliveries_leased_idx")
      .on(t.webhookId, t.leaseUntil)
      .where(sql`"state" = 'pending' and "lease_until" is not null`),
    index("webhook_deliveries_dead_idx").on(t.webhookId, t.id).where(sql`"state" = 'dead'`),
    index("webhook_deliveries_page_idx").on(t.webhookId, t.id),
    index("webhook_deliveries_ended_idx").on(t.endedAt).where(sql`"ended_at" is not null`),
  ],
);
export type WebhookDelivery = typeof webhookDeliveries.$inferSelect;
