import { bigint, pgTable, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** How far the hubs have exported the audit to each destination. One hub at a time exports audit entries to a destination, under a lease. */
export const auditExports = pgTable("audit_exports", {
  destination: text("destination").primaryKey(),
  /** The number of the last audit entry that is safe at the destination. */
  sequence: bigint("sequence", { mode: "number" }).notNull().default(0),
  leaseOwner: uuid("lease_owner").notNull(),
  leaseUntil: at("lease_until").notNull(),
});
export type AuditExport = typeof auditExports.$inferSelect;
