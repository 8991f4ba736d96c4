import type { SenderId } from "../../../shared/api/signal-senders.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt } from "./columns.ts";

/** The systems that sign their readiness signals. The secret of a sender is in the secret store, under the sender's id. */
export const signalSenders = pgTable("signal_senders", {
  id: uuid("id").$type<SenderId>().primaryKey().default(sql`gen_random_uuid()`),
  name: text("name").notNull().unique(),
  /** The sites to which the sender is limited; null for a sender without a limit. */
  sites: uuid("sites").array().$type<SiteId[]>(),
  createdBy: text("created_by").notNull(),
  /** The hub writes the last use of a sender at most once a minute. */
  lastUsedAt: at("last_used_at"),
  revokedAt: at("revoked_at"),
  createdAt: createdAt(),
});
export type SignalSenderRow = typeof signalSenders.$inferSelect;
