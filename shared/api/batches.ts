import { z } from "zod";
import { NEXT_VERBS } from "../failure-rule.ts";
import { BatchId, NodeId, SiteId, WorkflowId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { DECOMMISSION_MODES, WorkflowStatus } from "../workflow-status.ts";
import { DecommissionCreate, DrainCreate, ReleaseCreate, RemoveCreate, storageCleanupFields } from "./decommissions.ts";
import { countsFailures } from "./extensions.ts";
import { BatchRefusal, mustSelect, NodeFilter, RefusalGroup, selection } from "./node-selection.ts";
import { Hostname, Timestamp } from "./values.ts";

/** A batch is a set of operations that one request starts: onboardings only, or decommissions of one mode only. */
export const BATCH_KINDS = ["onboarding", "decommission"] as const;
export type BatchKind = (typeof BATCH_KINDS)[number];

/** The upper limit of `stop_after_failures` is the largest number of hosts in a batch of any kind. */
const MOST_FAILURES = 2000;
/** The field `stop_after_failures` belongs to the requests for batches of onboardings and to those for batches of decommissions. */
export const stopAfterFailures = z
  .int()
  .min(1)
  .max(MOST_FAILURES)
  .describe(
    "After so many failed hosts no further host begins until a person resumes the batch; without it, failures stop nothing",
  )
  .optional();

/** The mode of a batch's decommissions and the options of the mode, as in a request for one decommission (lifecycle 5.1). */
export const BatchOperation = z.discriminatedUnion("mode", [
  ...DecommissionCreate.options,
  z.strictObject({ mode: z.literal("storage_cleanup"), ...storageCleanupFields }),
  z.strictObject({ mode: z.literal("drain"), ...DrainCreate.shape }),
  z.strictObject({ mode: z.literal("release"), ...ReleaseCreate.shape }),
  z.strictObject({ mode: z.literal("remove"), ...RemoveCreate.shape }),
]);
export type BatchOperation = z.output<typeof BatchOperation>;

/**
 * The request for a batch of decommissions (lifecycle 5.10) selects its nodes by ids or by a filter. A request with a filter says how many nodes the
 * filter should match, so that the hub refuses a filter that matches another number.
 */
export const DecommissionBatchCreate = z
  .strictObject({
    site_id: SiteId,
    operation: BatchOperation.describe("The mode with its options and the reason, as for one node"),
    ...selection,
    stop_after_failures: stopAfterFailures,
  })
  .superRefine(mustSelect);
export type DecommissionBatchCreate = z.output<typeof DecommissionBatchCreate>;

export const DecommissionBatchCreated = z.strictObject({
  /** `batch_id` is null in the answer to a dry run (`plan`). */
  batch_id: BatchId.nullable(),
  mode: z.enum(DECOMMISSION_MODES),
  matched: z.int(),
  accepted: z.int(),
  refused: z.int().meta(countsFailures),
  refused_by: z.array(RefusalGroup),
  decommissions: z.array(
    z.strictObject({
      hostname: Hostname,
      node_id: NodeId,
      node_status: NodeStatus,
      /** `decommission_id` is null in the answer to a dry run (`plan`). */
      decommission_id: WorkflowId.nullable(),
      warning: z.string().nullable(),
    }),
  ),
  refusals: z.array(BatchRefusal),
});
export type DecommissionBatchCreated = z.output<typeof DecommissionBatchCreated>;

/** A batch is `done` when none of its operations continues without an operator (lifecycle 4.4, 5.10). */
export const Batch = z.strictObject({
  batch_id: BatchId,
  kind: z.enum(BATCH_KINDS),
  /** `mode` is null for a batch of onboardings. */
  mode: z.enum(DECOMMISSION_MODES).nullable(),
  site_id: SiteId,
  requested_by: z.string().nullable(),
  requested_at: Timestamp,
  started_at: Timestamp.nullable(),
  /** The time at which the last unfinished operation of the batch ended, or null while the batch is not done. */
  ended_at: Timestamp.nullable(),
  total: z.int(),
  succeeded: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  /** The number of nodes that the request selected but for which no operation could begin. The batch's `total` does not include the refused nodes. */
  refused: z.int(),
  counts: z.partialRecord(WorkflowStatus, z.int()),
  done: z.boolean(),
  /** The number of failures after which the hub begins no further operation of the batch; null if failures do not stop the batch. */
  stop_after_failures: z.int().nullable(),
  /** `paused` says why the hub begins no further operation of the batch; it is null while the batch is not paused. */
  paused: z
    .strictObject({
      since: Timestamp,
      /** The person who paused the batch; null if failures stopped the batch. */
      by: z.string().nullable(),
      reason: z.string(),
      next_action: z.string(),
    })
    .nullable(),
});
export type Batch = z.output<typeof Batch>;

/** Either `onboarding_id` or `decommission_id` is null, because all operations of a batch are onboardings or all are decommissions. */
const operationIds = { onboarding_id: WorkflowId.nullable(), decommission_id: WorkflowId.nullable() };

/** A batch's failed operations are grouped by their error code, because one next action applies to all hosts of a group. */
export const BatchFailure = z.strictObject({
  failure_class: z.string(),
  error_code: z.string(),
  next_action: z.string().nullable(),
  next_verb: z.enum(NEXT_VERBS).nullable(),
  hosts: z.array(z.strictObject({ ...operationIds, hostname: Hostname, message: z.string().nullable() })),
});
export type BatchFailure = z.output<typeof BatchFailure>;
export const BatchDetail = z.strictObject({
  ...Batch.shape,
  /**
   * `operation` and `filter` come from the request for a batch of decommissions. For a batch of onboardings, `operation` and `filter` are null. The
   * `filter` of a batch of decommissions is null if the request named the nodes by their ids.
   */
  operation: BatchOperation.nullable(),
  filter: NodeFilter.nullable(),
  failures: z.array(BatchFailure),
  refusals: z.array(BatchRefusal),
});
export type BatchDetail = z.output<typeof BatchDetail>;

export const BatchVerbResult = z.strictObject({
  batch_id: BatchId,
  applied: z.int(),
  skipped: z.int().meta(countsFailures),
  results: z.array(
    z.strictObject({
      ...operationIds,
      hostname: Hostname,
      verb: z.string().nullable(),
      status: WorkflowStatus,
      /** Why the operator's verb did nothing to the operation; null if the verb had an effect. */
      skipped_because: z.string().nullable(),
    }),
  ),
});
export type BatchVerbResult = z.output<typeof BatchVerbResult>;

export const operationIdsOf = (kind: BatchKind, id: WorkflowId) => ({
  onboarding_id: kind === "onboarding" ? id : null,
  decommission_id: kind === "decommission" ? id : null,
});
