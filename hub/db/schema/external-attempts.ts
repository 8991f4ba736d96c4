import type { ExternalFacts } from "../../../shared/api/external-attempts.ts";
import { EXTERNAL_STATES } from "../../../shared/external-attempt.ts";
import type { ExternalAttemptId, NodeId, ProfileId, SiteId } from "../../../shared/ids.ts";
import { boolean, check, index, integer, jsonb, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";
import { maasSiteProfiles } from "./maas-site-profiles.ts";
import { nodes } from "./nodes.ts";

/**
 * The attempts of external systems to provision a node's host, the newest with the highest number (decision N9). Only `moveAttempt` changes the state
 * of an attempt, by a compare-and-swap.
 */
export const externalAttempts = pgTable(
  "external_attempts",
  {
    id: uuid("id").$type<ExternalAttemptId>().primaryKey().default(sql`gen_random_uuid()`),
    nodeId: uuid("node_id")
      .$type<NodeId>()
      .notNull()
      .references(() => nodes.id, { onDelete: "cascade" }),
    siteId: uuid("site_id").$type<SiteId>(),
    /** The first provisioning attempt of a node has the number 1. */
    number: integer("number").notNull(),
    /** The generation that the node got when the provisioning attempt began. */
    generation: integer("generation").notNull(),
    /** The profile whose readiness policy the node must meet; null for a node without a profile. */
    profileId: uuid("profile_id")
      .$type<ProfileId>()
      .references(() => maasSiteProfiles.id),
    /** The name of the external system, as its owner calls it. */
    provisioner: text("provisioner").notNull(),
    /** The name of the token or person that began the provisioning attempt, and that alone reports about it. */
    holder: text("holder").notNull(),
    state: text("state", { enum: EXTERNAL_STATES }).notNull(),
    step: text("step"),
    percent: integer("percent"),
    reason: text("reason").notNull(),
    failureCode: text("failure_code"),
    facts: jsonb("facts").$type<ExternalFacts>(),
    leaseSeconds: integer("lease_seconds").notNull(),
    readyWithinSeconds: integer("ready_within_seconds").notNull(),
    begunAt: at("begun_at").notNull().default(sql`now()`),
    heardAt: at("heard_at").notNull().default(sql`now()`),
    leaseExpiresAt: at("lease_expires_at").notNull(),
    deadlineAt: at("deadline_at").notNull(),
    /** True if the host was provisioned before the hub heard of it, so that nobody knows who used its system. */
    adopted: boolean("adopted").notNull().default(false),
    /** When the external system finished provisioning the host: the time that the system reported, or else the time of its report. */
    provisionedAt: at("provisioned_at"),
    /** When the provisioning attempt got its present state. */
    changedAt: at("changed_at").notNull().default(sql`now()`),
    /** The number of reports about the provisioning attempt that came after a newer attempt had begun. Such late reports change nothing else. */
    lateReports: integer("late_reports").notNull().default(0),
    lastLateReport: text("last_late_report"),
  },
  (t) => [
    check("external_attempts_state_check", oneOf("state", EXTERNAL_STATES)),
    check("external_attempts_number_check", sql`"number" > 0`),
    uniqueIndex("external_attempts_number_key").on(t.nodeId, t.number),
    index("external_attempts_begun_idx").on(t.begunAt, t.id),
    // Retention finds old attempts by the index `external_attempts_age_idx`.
    index("external_attempts_age_idx").on(t.changedAt),
    // By this index, the hub's periodic check finds the provisioning attempts that wait for their external system, or for the node to become ready.
    index("external_attempts_waiting_idx")
      .on(t.deadlineAt)
      .where(sql`"state" in ('begun', 'in_progress', 'verifying', 'unverified', 'lost')`),
  ],
);
export type ExternalAttemptRow = typeof externalAttempts.$inferSelect;
