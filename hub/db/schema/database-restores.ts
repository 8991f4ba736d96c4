import { pgTable, sql, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * Each restore of the database from a backup. Between `backup_taken_at` and `restored_at` the hub has issued certificates that the database does not
 * have (decision I10).
 */
export const databaseRestores = pgTable("database_restores", {
  id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
  backupTakenAt: at("backup_taken_at").notNull(),
  restoredAt: at("restored_at").notNull().default(sql`now()`),
});
