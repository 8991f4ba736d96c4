import type { ChainPoint } from "../../../shared/audit-chain.ts";
import { bigint, boolean, check, integer, jsonb, pgTable, sql } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * The progress of the hubs' own check of the audit chain, in one row for all hubs. A check of the audit chain runs in parts, so that a long chain
 * occupies no hub for long; a finished check begins again at the first entry.
 */
export const auditChecks = pgTable(
  "audit_checks",
  {
    id: integer("id").primaryKey().default(1),
    /**
     * A check of the audit chain runs in parts; `part` is the number of parts that hubs have begun. A hub that needed long for a part of the audit
     * chain's check stores nothing after another hub has begun the next part.
     */
    part: bigint("part", { mode: "number" }).notNull().default(1),
    partBeganAt: at("part_began_at").notNull().default(sql`now()`),
    /** When the present check of the audit chain began, at the chain's first entry. */
    beganAt: at("began_at").notNull().default(sql`now()`),
    /** The number of the audit entry up to which the present check of the audit chain has come. */
    position: bigint("position", { mode: "number" }).notNull().default(0),
    /** Whether the last part of the check of the audit chain reached the end of the chain. */
    atEnd: boolean("at_end").notNull().default(false),
    faults: integer("faults").notNull().default(0),
    /** The number of faults that the last complete check of the audit chain has found. */
    faultsBefore: integer("faults_before").notNull().default(0),
    /** The number of the newest audit entry that a check has reached. */
    verifiedThrough: bigint("verified_through", { mode: "number" }).notNull().default(0),
    /**
     * `head` is the newest audit entry that a check has reached in an audit chain that still contained the previous `head`. Every later part of the
     * check requires that the audit chain contains the entry `head`, so a cut-off end stays a fault after the chain has grown again. A backup of the
     * database contains both the audit chain and the checked entry `head`, so a restored chain contains its `head`.
     */
    head: jsonb("head").$type<ChainPoint>(),
    /** When a hub last ended a part of the audit chain's check; null until the first part has ended. */
    checkedAt: at("checked_at"),
  },
  () => [check("audit_checks_one_row", sql.raw(`"id" = 1`))],
);
export type AuditCheck = typeof auditChecks.$inferSelect;
