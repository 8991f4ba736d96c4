import type { NodeId } from "../../../shared/ids.ts";
import { check, pgTable, primaryKey, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/** The kinds of erase, the weaker first. */
const ERASE_KINDS = ["quick", "secure"] as const;

/**
 * Health overrides: alerts about a node that keep new work off it until a person removes them, or until their cause is gone (decision M9). A node may
 * have one override of each source, and a new override replaces an older one of the same source. All overrides of a node count together.
 */
export const nodeHealthOverrides = pgTable(
  "node_health_overrides",
  {
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    /** The name of the cause, for example `disk-erase`. */
    source: text("source").notNull(),
    /** The part of the host that the override is about, for example the system id of its machine in MAAS. */
    target: text("target"),
    reason: text("reason").notNull(),
    /** `operator:` and the name of the operator whose decision set the override, or `operation:` and the id of the operation that set it. */
    setBy: text("set_by").notNull(),
    /** The weakest erase whose evidence ends an override about an erase. Null means that only a secure erase does. */
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
