import type { ChainPoint } from "../../../shared/audit-chain.ts";
import { bigint, boolean, check, integer, jsonb, pgTable, sql } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The progress of the hubs' own check of the audit chain, in one row for all hubs. A check runs in parts, so that a long chain occupies no hub for long,
 * and begins again at the first entry after the last one.
 */
export const auditChecks = pgTable(
  "audit_checks",
  {
    id: integer("id").primaryKey().default(1),
    /** The number of parts that hubs have begun. A hub that was slow writes nothing after another hub has begun the next part. */
    part: bigint("part", { mode: "number" }).notNull().default(1),
    partBeganAt: at("part_began_at").notNull().default(sql`now()`),
    /** When the present check began at the first entry of the chain. */
    beganAt: at("began_at").notNull().default(sql`now()`),
    /** The number of the entry through which the present check has come. */
    position: bigint("position", { mode: "number" }).notNull().default(0),
    /** Whether the last part of the check came to the end of the chain. */
    atEnd: boolean("at_end").notNull().default(false),
    faults: integer("faults").notNull().default(0),
    /** The faults that the last check from the first entry to the end has found. */
    faultsBefore: integer("faults_before").notNull().default(0),
    /** The number of the newest entry that a check has reached. */
    verifiedThrough: bigint("verified_through", { mode: "number" }).notNull().default(0),
    /**
     * The newest entry that a check has reached while the chain still had the head before. Every later part requires this entry, so a cut end stays a
     * fault after the chain has grown again. A backup contains the head together with its chain, so a restored chain has its head.
     */
    head: jsonb("head").$type<ChainPoint>(),
    /** When a hub last ended a part of a check; null until the first part has ended. */
    checkedAt: at("checked_at"),
  },
  () => [check("audit_checks_one_row", sql.raw(`"id" = 1`))],
);
export type AuditCheck = typeof auditChecks.$inferSelect;
