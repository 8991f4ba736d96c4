import type { AllocationId, NodeId, RepairId, SiteId } from "../../../shared/ids.ts";
import {
  ENDED_STATES,
  HOLD_NAMES,
  ISSUE_CATEGORIES,
  REPAIR_MODES,
  REPAIR_OUTCOMES,
  REPAIR_STATE_NAMES,
} from "../../../shared/repair.ts";
import { boolean, check, index, integer, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";

const isOpen = sql.raw(`"state" not in (${ENDED_STATES.map((state) => `'${state}'`).join(", ")})`);

/**
 * The repairs of machines (docs/spec/repair.md). Only `moveCase` changes the state of a repair case. No column is a foreign key, because a repair
 * case outlives its node.
 */
export const repairCases = pgTable(
  "repair_cases",
  {
    id: uuid("id").$type<RepairId>().primaryKey().default(sql`gen_random_uuid()`),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    hostname: text("hostname").notNull(),
    mode: text("mode", { enum: REPAIR_MODES }).notNull(),
    state: text("state", { enum: REPAIR_STATE_NAMES }).notNull(),
    /** The time since which the repair case is in its state, from which the hub computes the age of a request that nobody claims. */
    stateSince: at("state_since").notNull().default(sql`now()`),
    /** The issue of the repair case as it was last reported; the timeline of the case has the earlier issues. */
    category: text("category", { enum: ISSUE_CATEGORIES }).notNull(),
    summary: text("summary").notNull(),
    details: text("details"),
    /** A text about the failure of the last repair attempt; null after a successful attempt, and after a report has named another issue. */
    finding: text("finding"),
    /** The allocation whose tenant reported the issue, and this tenant; null if a person of the fleet's operator opened the repair case. */
    allocationId: uuid("allocation_id").$type<AllocationId>(),
    tenant: text("tenant"),
    openedBy: text("opened_by").notNull(),
    openedAt: createdAt(),
    /** How many times somebody has claimed this repair case in order to repair the machine. */
    attempt: integer("attempt").notNull().default(0),
    claimedBy: text("claimed_by"),
    /** The tenant whose repair systems may see the repair case and report about it; null if a person without a tenant has claimed the case. */
    repairTenant: text("repair_tenant"),
    /** The end of the repair claim, at which the repair attempt counts as failed if nobody has reported its outcome. */
    claimUntil: at("claim_until"),
    /** The allocation that gives the party that claimed the repair case access to the host. */
    accessAllocationId: uuid("access_allocation_id").$type<AllocationId>(),
    outcome: text("outcome", { enum: REPAIR_OUTCOMES }),
    /**
     * The time at which the last repair attempt at the machine ended. A cleaning and a validation of the machine count for the repair only if they
     * come after `worked_until`.
     */
    workedUntil: at("worked_until"),
    validatedAt: at("validated_at"),
    validatedBy: text("validated_by"),
    /** Why a report of an issue led to no automatic repair request. */
    heldBack: text("held_back", { enum: HOLD_NAMES }),
    /** The digests of the evidence of the fault that led to the attempts to repair the machine. */
    evidence: text("evidence").array().notNull().default(sql`'{}'`),
    /** For an online repair: whether the hub releases the allocation if the repair fails, as the tenant has agreed. */
    releaseOnFailure: boolean("release_on_failure").notNull().default(false),
    endedAt: at("ended_at"),
  },
  (t) => [
    check("repair_cases_mode_check", oneOf("mode", REPAIR_MODES)),
    check("repair_cases_state_check", oneOf("state", REPAIR_STATE_NAMES)),
    check("repair_cases_category_check", oneOf("category", ISSUE_CATEGORIES)),
    check("repair_cases_outcome_check", oneOf("outcome", REPAIR_OUTCOMES)),
    check("repair_cases_held_back_check", oneOf("held_back", HOLD_NAMES)),
    check("repair_cases_ended_check", sql`(${isOpen}) = ("ended_at" is null)`),
    check(
      "repair_cases_claimed_check",
      sql`"state" <> 'claimed' or ("claimed_by" is not null and "claim_until" is not null)`,
    ),
    // The periodic job for repair cases and the lists of free nodes also use the index `repair_cases_open_node_key` to find the open repair cases.
    uniqueIndex("repair_cases_open_node_key").on(t.nodeId).where(sql`"ended_at" is null`),
    index("repair_cases_opened_idx").on(t.openedAt, t.id),
    index("repair_cases_node_idx").on(t.nodeId, t.openedAt),
    index("repair_cases_age_idx").on(t.endedAt).where(sql`"ended_at" is not null`),
  ],
);
export type RepairCase = typeof repairCases.$inferSelect;
