import { bigserial, index, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The transactional outbox of typed domain events (lifecycle 8.0, decision P5). The hub writes a domain event in the transaction of the change that
 * the event reports.
 */
export const domainEvents = pgTable(
  "domain_events",
  {
    seq: bigserial("seq", { mode: "bigint" }).primaryKey(),
    id: uuid("id").notNull().unique().default(sql`gen_random_uuid()`),
    type: text("type").notNull(),
    subject: text("subject").notNull(),
    data: jsonb("data").notNull(),
    occurredAt: at("occurred_at").notNull().default(sql`now()`),
  },
  (t) => [
    index("domain_events_subject_idx").on(t.subject, t.seq),
    index("domain_events_progress_idx").on(t.occurredAt).where(sql`"type" = 'operation.progressed'`),
  ],
);
export type DomainEventRow = typeof domainEvents.$inferSelect;
