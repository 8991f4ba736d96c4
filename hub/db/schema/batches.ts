import { BATCH_KINDS, type BatchOperation } from "../../../shared/api/batches.ts";
import type { BatchRefusal, NodeFilter } from "../../../shared/api/node-selection.ts";
import type { BatchId, SiteId } from "../../../shared/ids.ts";
import { check, integer, jsonb, pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";

/**
 * Each row is a batch of onboardings or of decommissions (lifecycle 4.4, 5.10). The table `onboarding_batches` keeps its old name, because hubs of an
 * older version write the table during a rolling upgrade (decision W3).
 */
export const batches = pgTable(
  "onboarding_batches",
  {
    id: uuid("id").$type<BatchId>().primaryKey().default(sql`gen_random_uuid()`),
    kind: text("kind", { enum: BATCH_KINDS }).notNull().default("onboarding"),
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    /** The mode of the batch's decommissions, with the options of the mode; null for a batch of onboardings. */
    operation: jsonb("operation").$type<BatchOperation>(),
    /** The filter that selected the nodes of the batch; null if the request named the hosts. */
    filter: jsonb("filter").$type<NodeFilter>(),
    refusals: jsonb("refusals").$type<BatchRefusal[]>().notNull().default([]),
    /** The number of failed operations after which no further operation of the batch begins; null if failures do not stop the batch. */
    stopAfterFailures: integer("stop_after_failures"),
    /** The time since which no further operation of the batch begins; null while the batch is not paused. */
    pausedAt: at("paused_at"),
    /** The person who paused the batch; null if the batch was paused because of its failures. */
    pausedBy: text("paused_by"),
    pausedReason: text("paused_reason"),
    /** The time when a person last resumed the batch. Failures from before `resumed_at` do not count for `stop_after_failures`. */
    resumedAt: at("resumed_at"),
    requestedBy: text("requested_by"),
    requestedAt: createdAt(),
  },
  () => [check("onboarding_batches_kind_check", oneOf("kind", BATCH_KINDS))],
);
export type BatchRow = typeof batches.$inferSelect;
