import type { NodeId } from "../../../shared/ids.ts";
import type { Probe } from "../../../shared/probes.ts";
import type { ConditionStatus } from "../../../shared/readiness.ts";
import { check, index, integer, jsonb, pgTable, primaryKey, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";
import { nodes } from "./nodes.ts";

/**
 * The probes that the hubs make at present, one row for each node and probe of its profile. A hub that claims a probe moves `next_at` to the next
 * probe, so a hub that is killed during a probe loses one result, and no other hub waits for it.
 */
export const nodeProbes = pgTable(
  "node_probes",
  {
    nodeId: uuid("node_id")
      .$type<NodeId>()
      .notNull()
      .references(() => nodes.id, { onDelete: "cascade" }),
    name: text("name").notNull(),
    /** The probe as the node's profile defined it when the hub began to count the probe's results. */
    probe: jsonb("probe").$type<Probe>().notNull(),
    generation: integer("generation").notNull(),
    /** The address or name of the node that the probe's results are about; null if the hub knew none. */
    host: text("host"),
    /** The status that the probe's results so far give, as in the node's condition. */
    status: text("status", { enum: ["True", "False", "Unknown"] })
      .$type<ConditionStatus>()
      .notNull()
      .default("Unknown"),
    /**
     * The number of successes of the node's probe in a row, and the number of its failures in a row, up to the newest result. At least one of the
     * numbers of successes and of failures is 0.
     */
    successes: integer("successes").notNull().default(0),
    failures: integer("failures").notNull().default(0),
    nextAt: at("next_at").notNull(),
    /**
     * Each time a hub claims the probe to run it, the number `claim` rises. A result of a probe counts only if no hub has claimed the probe again
     * since the claim under which the result was measured.
     */
    claim: integer("claim").notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.nodeId, t.name] }),
    check("node_probes_status_check", oneOf("status", ["True", "False", "Unknown"])),
    index("node_probes_next_at_idx").on(t.nextAt),
  ],
);
export type NodeProbeRow = typeof nodeProbes.$inferSelect;
