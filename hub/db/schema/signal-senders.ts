import type { SenderId } from "../../../shared/api/signal-senders.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt } from "./columns.ts";

/**
 * The systems that sign their readiness signals. The hub keeps the secret with which a system signs its readiness signals in the secret store, under
 * the system's sender id.
 */
export const signalSenders = pgTable("signal_senders", {
  id: uuid("id").$type<SenderId>().primaryKey().default(sql`gen_random_uuid()`),
  name: text("name").notNull().unique(),
  /** The sites to which a sender of readiness signals is limited; null for a sender without a limit. */
  sites: uuid("sites").array().$type<SiteId[]>(),
  createdBy: text("created_by").notNull(),
  /** The hub writes the time of the last signal of a sender at most once a minute. */
  lastUsedAt: at("last_used_at"),
  revokedAt: at("revoked_at"),
  createdAt: createdAt(),
});
export type SignalSenderRow = typeof signalSenders.$inferSelect;
