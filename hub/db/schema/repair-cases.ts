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

/** The repairs of machines (docs/spec/repair.md). Only `moveCase` changes the state of a case. No column is a foreign key, because a case outlives its node. */
export const repairCases = pgTable(
  "repair_cases",
  {
    id: uuid("id").$type<RepairId>().primaryKey().default(sql`gen_random_uuid()`),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    hostname: text("hostname").notNull(),
    mode: text("mode", { enum: REPAIR_MODES }).notNull(),
    state: text("state", { enum: REPAIR_STATE_NAMES }).notNull(),
    /** The time since which the case is in its state, for the age of a request that nobody claims. */
    stateSince: at("state_since").notNull().default(sql`now()`),
    /** The issue as it was last reported; the timeline has the earlier ones. */
    category: text("category", { enum: ISSUE_CATEGORIES }).notNull(),
    summary: text("summary").notNull(),
    details: text("details"),
    /** What an attempt without success left, until another report names an issue. */
    finding: text("finding"),
    /** The allocation whose tenant reported the issue, and its tenant; null if a person of the provider opened the case. */
    allocationId: uuid("allocation_id").$type<AllocationId>(),
    tenant: text("tenant"),
    openedBy: text("opened_by").notNull(),
    openedAt: createdAt(),
    /** The number of claims of this case. */
    attempt: integer("attempt").notNull().default(0),
    claimedBy: text("claimed_by"),
    /** The tenant whose repair systems may see and report the case; null if a person without a tenant has claimed it. */
    repairTenant: text("repair_tenant"),
    /** The end of the claim, at which the attempt counts as failed if nobody reported its outcome. */
    claimUntil: at("claim_until"),
    /** The allocation by which the claim gives access to the host. */
    accessAllocationId: uuid("access_allocation_id").$type<AllocationId>(),
    outcome: text("outcome", { enum: REPAIR_OUTCOMES }),
    /** The time at which the work on the machine was last said to be done. A cleaning and a validation count only after it. */
    workedUntil: at("worked_until"),
    validatedAt: at("validated_at"),
    validatedBy: text("validated_by"),
    /** Why a report became no automatic request. */
    heldBack: text("held_back", { enum: HOLD_NAMES }),
    /** The digests of the evidence that led to the attempts. */
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
    // By the same index the sweep and the lists of free nodes find the open cases.
    uniqueIndex("repair_cases_open_node_key").on(t.nodeId).where(sql`"ended_at" is null`),
    index("repair_cases_opened_idx").on(t.openedAt, t.id),
    index("repair_cases_node_idx").on(t.nodeId, t.openedAt),
    index("repair_cases_age_idx").on(t.endedAt).where(sql`"ended_at" is not null`),
  ],
);
export type RepairCase = typeof repairCases.$inferSelect;
