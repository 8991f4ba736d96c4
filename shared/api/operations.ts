import { z } from "zod";
import { BatchId, NodeId, SiteId, WorkflowId } from "../ids.ts";
import { DECOMMISSION_MODES, StatusFilter } from "../workflow-status.ts";
import { FailureClass } from "./node-filter.ts";
import { flag, oneOrMore } from "./query-values.ts";
import { Hostname, HostnamePrefix, Timestamp } from "./values.ts";
import { workflowProgress } from "./workflow-progress.ts";

/** Every kind of operation on a host: an onboarding, or a decommission of one of its modes. */
const OPERATION_KINDS = ["onboarding", ...DECOMMISSION_MODES] as const;
export const OperationKind = z.enum(OPERATION_KINDS);
export type OperationKind = z.output<typeof OperationKind>;

const { error_details: _large, ...progress } = workflowProgress;

/**
 * An operation in the list of all operations. The route of a single onboarding or decommission also shows the operation's history and the details of
 * its error.
 */
export const OperationSummary = z.strictObject({
  operation_id: WorkflowId,
  kind: OperationKind,
  batch_id: BatchId.nullable(),
  node_id: NodeId,
  site_id: SiteId.nullable(),
  hostname: z.string(),
  maas_system_id: z.string().nullable(),
  ...progress,
  /** The time when the operation entered its present stage; null before its first stage has begun. */
  stage_entered_at: Timestamp.nullable(),
});
export type OperationSummary = z.output<typeof OperationSummary>;

const OPERATION_SORTS = ["-requested_at", "requested_at", "stage_deadline", "-stage_deadline"] as const;
export const OperationSort = z
  .enum(OPERATION_SORTS)
  .describe(
    "The order of the list; a minus before the name reverses it. An operation without a deadline has the latest",
  );
export type OperationSort = z.output<typeof OperationSort>;

export const operationFilterQuery = {
  kind: oneOrMore(OperationKind, "The kind of the operation").optional(),
  status: oneOrMore(
    StatusFilter,
    "The status of the operation; failed means both statuses of a failed operation",
  ).optional(),
  site_id: SiteId.optional(),
  node_id: NodeId.optional(),
  batch_id: BatchId.optional(),
  hostname: Hostname.optional(),
  hostname_prefix: HostnamePrefix.optional(),
  failure_class: oneOrMore(FailureClass, "The class of the operation's failure").optional(),
  requested_by: z.string().min(1).max(128).optional(),
  slow: flag("Whether the operation's stage has used more than 80 % of the time until its deadline").optional(),
};

export const OperationList = z.strictObject({
  items: z.array(OperationSummary),
  next_cursor: z.string().nullable(),
  /** The number of operations on all pages of the list; null if the request did not ask for it. */
  total: z.int().nullable(),
});
