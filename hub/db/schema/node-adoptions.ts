import type { AdoptionDifference } from "../../../shared/adoption.ts";
import type { NodeId, ProfileId, SiteId } from "../../../shared/ids.ts";
import { boolean, jsonb, pgTable, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { maasSiteProfiles } from "./maas-site-profiles.ts";
import { nodes } from "./nodes.ts";

/** One row for each node that was bound to a running machine of MAAS by a request, and not by an onboarding (decision N8). */
export const nodeAdoptions = pgTable("node_adoptions", {
  nodeId: uuid("node_id")
    .$type<NodeId>()
    .primaryKey()
    .references(() => nodes.id, { onDelete: "cascade" }),
  siteId: uuid("site_id").$type<SiteId>().notNull(),
  /** The profile with which the hub judges the node's hardware sync, cleans the node, and deploys it in a reimage. */
  profileId: uuid("profile_id")
    .$type<ProfileId>()
    .notNull()
    .references(() => maasSiteProfiles.id),
  adoptedBy: text("adopted_by").notNull(),
  /**
   * True if nobody knows who used the system that the host ran at the adoption. No snapshot of a system with an unknown past proves that the host is
   * clean, so only a reimage makes the node schedulable.
   */
  pastUnknown: boolean("past_unknown").notNull(),
  /** True if the node was of manual mode until a request bound it to its machine, so that the node can be unbound again. */
  wasManual: boolean("was_manual").notNull().default(false),
  /** The differences between the machine and the adoption request to which the request itself agreed. */
  differences: jsonb("differences").$type<readonly AdoptionDifference[]>().notNull(),
  createdAt: createdAt(),
});
export type NodeAdoption = typeof nodeAdoptions.$inferSelect;
