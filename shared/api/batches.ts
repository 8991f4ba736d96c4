import { z } from "zod";
import { NEXT_VERBS } from "../failure-rule.ts";
import { BatchId, NodeId, SiteId, WorkflowId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { DECOMMISSION_MODES, WorkflowStatus } from "../workflow-status.ts";
import { DecommissionCreate, DrainCreate, ReleaseCreate, RemoveCreate, storageCleanupFields } from "./decommissions.ts";
import { API_ERRORS, type ApiErrorCode } from "./errors.ts";
import { countsFailures } from "./extensions.ts";
import { SkuId } from "./sites.ts";
import { Hostname, Timestamp } from "./values.ts";

/** The kinds of batches. All operations of one batch are onboardings, or all are decommissions of one mode. */
export const BATCH_KINDS = ["onboarding", "decommission"] as const;
export type BatchKind = (typeof BATCH_KINDS)[number];

/**
 * The largest number of nodes in one batch of decommissions. The hub locks all nodes of a batch in one transaction, with about ten SQL statements for
 * each node. Until the transaction ends, clients see no newer events.
 */
export const MOST_NODES = 200;

/** The largest number of failures after which a batch stops, which is the largest number of hosts in a batch of any kind. */
const MOST_FAILURES = 2000;
/** The field of both kinds of batches by which failures stop a batch. */
export const stopAfterFailures = z
  .int()
  .min(1)
  .max(MOST_FAILURES)
  .describe(
    "After so many failed hosts no further host begins until a person resumes the batch; without it, failures stop nothing",
  )
  .optional();

/** The first characters of hostnames, for example the name of a rack with whose name the names of its hosts begin. */
export const HostnamePrefix = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be the beginning of a hostname: lower-case letters, digits and hyphens");

/** The nodes of a site that a batch takes. A field that the filter does not have excludes no node. */
export const NodeFilter = z.strictObject({
  status: NodeStatus.describe("Without it, nodes of every status except deleted").optional(),
  sku_id: SkuId.optional(),
  hostname_prefix: HostnamePrefix.describe("The beginning of the hostnames, for example of a rack's hosts").optional(),
});
export type NodeFilter = z.output<typeof NodeFilter>;

/** The mode of a batch's decommissions with the options of the mode, as in the request for one decommission (lifecycle 5.1). */
export const BatchOperation = z.discriminatedUnion("mode", [
  ...DecommissionCreate.options,
  z.strictObject({ mode: z.literal("storage_cleanup"), ...storageCleanupFields }),
  z.strictObject({ mode: z.literal("drain"), ...DrainCreate.shape }),
  z.strictObject({ mode: z.literal("release"), ...ReleaseCreate.shape }),
  z.strictObject({ mode: z.literal("remove"), ...RemoveCreate.shape }),
]);
export type BatchOperation = z.output<typeof BatchOperation>;

/**
 * The request for a batch of decommissions (lifecycle 5.10). The request selects the nodes by their ids or by a filter. A request with a filter must
 * say how many nodes the filter matches, so that the hub refuses a filter that matches more nodes than its author meant.
 */
export const DecommissionBatchCreate = z
  .strictObject({
    site_id: SiteId,
    operation: BatchOperation.describe("The mode with its options and the reason, as for one node"),
    node_ids: z.array(NodeId).min(1).max(MOST_NODES).describe("The nodes; either these or a filter").optional(),
    filter: NodeFilter.describe("Takes the nodes of the site that match every field").optional(),
    expected_count: z
      .int()
      .min(1)
      .max(MOST_NODES)
      .describe("How many nodes the filter matches; if it matches another number, nothing begins")
      .optional(),
    stop_after_failures: stopAfterFailures,
    plan: z
      .boolean()
      .describe("Only say which nodes would be taken and which refused, and change nothing")
      .default(false),
  })
  .superRefine(({ node_ids: ids, filter, expected_count: expected, plan }, ctx) => {
    const refuse = (field: string, message: string): void => ctx.addIssue({ code: "custom", path: [field], message });
    if ((ids === undefined) === (filter === undefined)) refuse("node_ids", "name the nodes by node_ids or by filter");
    if (ids !== undefined && new Set(ids).size !== ids.length) refuse("node_ids", "names a node twice");
    if (ids !== undefined && expected !== undefined) refuse("expected_count", "belongs to a filter");
    if (filter !== undefined && expected === undefined && !plan)
      refuse("expected_count", "is needed with a filter; a request with plan says how many nodes the filter matches");
  });
export type DecommissionBatchCreate = z.output<typeof DecommissionBatchCreate>;

/** A node that a request for a batch selected and for which no decommission can begin: the error of a request for the node alone. */
export const BatchRefusal = z.strictObject({
  node_id: NodeId,
  /** The node's hostname; null if the site has no node with the id. */
  hostname: Hostname.nullable(),
  error_code: z.enum(Object.keys(API_ERRORS) as [ApiErrorCode, ...ApiErrorCode[]]),
  message: z.string(),
});
export type BatchRefusal = z.output<typeof BatchRefusal>;

export const DecommissionBatchCreated = z.strictObject({
  /** The new batch. `batch_id` is null in the answer to a request with `plan`. */
  batch_id: BatchId.nullable(),
  mode: z.enum(DECOMMISSION_MODES),
  /** How many nodes the request selected. */
  matched: z.int(),
  accepted: z.int(),
  refused: z.int().meta(countsFailures),
  decommissions: z.array(
    z.strictObject({
      hostname: Hostname,
      node_id: NodeId,
      node_status: NodeStatus,
      /** The decommission of the node. `decommission_id` is null in the answer to a request with `plan`. */
      decommission_id: WorkflowId.nullable(),
      warning: z.string().nullable(),
    }),
  ),
  refusals: z.array(BatchRefusal),
});
export type DecommissionBatchCreated = z.output<typeof DecommissionBatchCreated>;

/** The state of a batch (lifecycle 4.4, 5.10). A batch is `done` when none of its operations continues without an operator. */
export const Batch = z.strictObject({
  batch_id: BatchId,
  kind: z.enum(BATCH_KINDS),
  /** The mode of the batch's decommissions; null for a batch of onboardings. */
  mode: z.enum(DECOMMISSION_MODES).nullable(),
  site_id: SiteId,
  requested_by: z.string().nullable(),
  requested_at: Timestamp,
  started_at: Timestamp.nullable(),
  /** When the last unfinished operation of the batch ended. The batch's `ended_at` is null until the batch is done. */
  ended_at: Timestamp.nullable(),
  total: z.int(),
  succeeded: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  /** How many nodes the request selected for which no operation could begin. Refused nodes are not part of the batch's `total`. */
  refused: z.int(),
  counts: z.partialRecord(WorkflowStatus, z.int()),
  done: z.boolean(),
  /** After how many failures no further operation of the batch begins; null if failures do not stop the batch. */
  stop_after_failures: z.int().nullable(),
  /** Why no further operation of the batch begins, and what the operator does next. `paused` is null while the batch is not paused. */
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

/** The ids of a host's operation in a batch. One of the two ids is null, according to the kind of the batch. */
const operationIds = { onboarding_id: WorkflowId.nullable(), decommission_id: WorkflowId.nullable() };

/** The hosts of a batch whose operations failed with one error code, and the operator's next action. */
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
  /** The request of a batch of decommissions. Both fields are null for a batch of onboardings; `filter` is null if the request named the nodes. */
  operation: BatchOperation.nullable(),
  filter: NodeFilter.nullable(),
  failures: z.array(BatchFailure),
  refusals: z.array(BatchRefusal),
});
export type BatchDetail = z.output<typeof BatchDetail>;

/** The result of an operator's verb for a batch: for each operation, what the verb did or why the verb did nothing. */
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
      /** Why the operator's verb did nothing to the operation. `skipped_because` is null if the verb had an effect on the operation. */
      skipped_because: z.string().nullable(),
    }),
  ),
});
export type BatchVerbResult = z.output<typeof BatchVerbResult>;

/** Returns the ids of a host's operation in a batch of the given kind. */
export const operationIdsOf = (kind: BatchKind, id: WorkflowId) => ({
  onboarding_id: kind === "onboarding" ? id : null,
  decommission_id: kind === "decommission" ? id : null,
});
