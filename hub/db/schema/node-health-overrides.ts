import { type HealthAlert, OVERRIDE_MODES } from "../../../shared/health-report.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { boolean, check, index, integer, jsonb, pgTable, primaryKey, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/** The kinds of disk erase, ordered from the weaker to the stronger. */
const ERASE_KINDS = ["quick", "secure"] as const;

/**
 * A health override says what is wrong with a node, until a person removes the override, its time is over, or its cause is gone (decisions M9 and H1). A
 * node has at most one override of each source, because a new override replaces the older override of its source.
 */
export const nodeHealthOverrides = pgTable(
  "node_health_overrides",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    source: text("source").notNull(),
    /** The part of the host that the health override is about, for example the system id of the host's machine in MAAS. */
    target: text("target"),
    reason: text("reason").notNull(),
    /**
     * The setter of the health override is `operator:` with the operator's name, `operation:` with the operation's id, or `repair:` with the id of
     * the repair case.
     */
    setBy: text("set_by").notNull(),
    /**
     * The weakest kind of erase whose evidence ends a health override about an erase. If `needed_erase` is null, only evidence of a secure erase ends
     * the health override.
     */
    neededErase: text("needed_erase", { enum: ERASE_KINDS }),
    since: at("since").notNull().default(sql`now()`),
    /** A health override of the mode `replace` hides the node's other health overrides, except Muster's own and what prevents a release. */
    mode: text("mode", { enum: OVERRIDE_MODES }).notNull().default("merge"),
    /** The alerts that a person set; null for a health override that Muster itself set, which stands for one alert. */
    alerts: jsonb("alerts").$type<readonly HealthAlert[]>(),
    /** Whether an alert of the health override keeps new tenants off the node. Only the code that writes `alerts` sets `prevents_allocations`. */
    preventsAllocations: boolean("prevents_allocations").notNull().default(true),
    /** The time at which the health override ends by itself; null if only a person, or the end of its cause, ends it. */
    expiresAt: at("expires_at"),
    /**
     * The number of times that the health override of this source was set; a client names this number, so that it changes only the version that it
     * has seen.
     */
    revision: integer("revision").notNull().default(1),
  },
  (t) => [
    primaryKey({ columns: [t.nodeId, t.source] }),
    check("node_health_overrides_needed_erase_check", oneOf("needed_erase", ERASE_KINDS)),
    check("node_health_overrides_mode_check", oneOf("mode", OVERRIDE_MODES)),
    index("node_health_overrides_expiry_idx").on(t.expiresAt).where(sql`"expires_at" is not null`),
    check("node_health_overrides_source_check", sql`"source" ~ '^[a-z0-9][a-z0-9._-]{0,62}$'`),
  ],
);
export type NodeHealthOverride = typeof nodeHealthOverrides.$inferSelect;
