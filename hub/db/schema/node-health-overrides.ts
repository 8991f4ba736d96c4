import type { NodeId } from "../../../shared/ids.ts";
import { check, pgTable, primaryKey, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/** The kinds of disk erase, ordered from the weaker to the stronger. */
const ERASE_KINDS = ["quick", "secure"] as const;

/**
 * A health override is an alert that keeps new work off a node until a person removes the alert or its cause is gone (decision M9). A node has at
 * most one override of each source, because a new override replaces the older override of its source.
 */
export const nodeHealthOverrides = pgTable(
  "node_health_overrides",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    source: text("source").notNull(),
    /** The part of the host that the health override is about, for example the system id of the host's machine in MAAS. */
    target: text("target"),
    reason: text("reason").notNull(),
    /** The setter of the health override is `operator:` with the operator's name, or `operation:` with the operation's id. */
    setBy: text("set_by").notNull(),
    /**
     * The weakest kind of erase whose evidence ends a health override about an erase. If `needed_erase` is null, only evidence of a secure erase ends
     * the health override.
     */
    neededErase: text("needed_erase", { enum: ERASE_KINDS }),
    since: at("since").notNull().default(sql`now()`),
  },
  (t) => [
    primaryKey({ columns: [t.nodeId, t.source] }),
    check("node_health_overrides_needed_erase_check", oneOf("needed_erase", ERASE_KINDS)),
    check("node_health_overrides_source_check", sql`"source" ~ '^[a-z0-9][a-z0-9._-]{0,62}$'`),
  ],
);
export type NodeHealthOverride = typeof nodeHealthOverrides.$inferSelect;
