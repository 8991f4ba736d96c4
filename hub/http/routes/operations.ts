import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { OperationTimeline, type UsualDuration } from "../../../shared/api/operation-timeline.ts";
import { OperationList, OperationSort, operationFilterQuery } from "../../../shared/api/operations.ts";
import { flag } from "../../../shared/api/query-values.ts";
import { WorkflowId } from "../../../shared/ids.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import {
  type OperationHistory,
  readOperationHistory,
  readUsualDurations,
} from "../../db/queries/operation-timeline.ts";
import { countOperations, listOperations, type OperationFilter, operationCursor } from "../../db/queries/operations.ts";
import type { Reach } from "../../db/queries/reach.ts";
import { timelineOf } from "../../workflows/timeline/timeline.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute } from "../route.ts";

const Query = z.strictObject({
  ...pageQuery,
  ...operationFilterQuery,
  sort: OperationSort.default("-requested_at"),
  include_total: flag("Also count the operations of all pages").default("false"),
});

const toFilter = (query: z.output<typeof Query>, reach: Reach): OperationFilter => ({
  reach,
  kinds: query.kind,
  statuses: query.status,
  siteId: query.site_id,
  nodeId: query.node_id,
  batchId: query.batch_id,
  hostname: query.hostname,
  hostnamePrefix: query.hostname_prefix,
  failureClasses: query.failure_class,
  requestedBy: query.requested_by,
  slow: query.slow === undefined ? undefined : query.slow === "true",
});

const listAllOperations = readRoute({
  operationId: "listOperations",
  method: "GET",
  path: "/api/v1/admin/operations",
  tag: "operations",
  summary: "List operations of all kinds, onboardings and decommissions of every mode, newest first",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: Query,
  status: 200,
  response: OperationList,
  read: async ({ query, actor, deps }) => {
    const filter = toFilter(query, actor);
    const after = readCursor(query.cursor, operationCursor(query.sort));
    const rows = await listOperations(deps.db, filter, { limit: query.limit + 1, after, sort: query.sort });
    const total = query.include_total === "true" ? await countOperations(deps.db, filter) : null;
    const shown = pageOf(
      rows,
      query.limit,
      ({ cursor }) => cursor,
      ({ operation }) => operation,
    );
    return { ...shown, total };
  },
});

const readTimeline = readRoute({
  operationId: "getOperationTimeline",
  method: "GET",
  path: "/api/v1/admin/operations/{id}/timeline",
  tag: "operations",
  summary:
    "Read where an operation's time went, stage by stage, what it waits for, what comes next and how long that usually takes",
  permission: "read",
  right: "read_fleet",
  place: { of: "operation", param: "id" },
  params: z.strictObject({ id: WorkflowId }),
  status: 200,
  response: OperationTimeline,
  read: async ({ params, deps }) => {
    const history = await readOperationHistory(deps.db, params.id);
    if (history === null) throw new ApiError("not_found", `There is no operation ${params.id}.`);
    const [usual, now] = [await readUsualDurations(deps.db, history.operation), await databaseNow(deps.db)];
    return toTimeline(history, usual, now);
  },
});

function toTimeline(
  { operation, deadline, undoing, events, cut }: OperationHistory,
  usual: ReadonlyMap<string, UsualDuration>,
  now: Date,
): OperationTimeline {
  const { operation_id, kind, status, node_id, site_id, hostname, requested_at, completed_at } = operation;
  const past = events.map(({ occurredAt, ...event }) => ({ ...event, at: occurredAt }));
  const stage = operation.current_stage;
  return {
    operation_id,
    kind,
    status,
    node_id,
    site_id,
    hostname,
    requested_at,
    completed_at,
    now: now.toISOString(),
    ...timelineOf({ kind, status, stage, deadline, undoing, events: past, usual, now }),
    cut,
  };
}

export const operationRoutes = [listAllOperations, readTimeline];
