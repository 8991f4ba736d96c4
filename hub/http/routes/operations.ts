import { z } from "zod";
import { OperationList, OperationSort, operationFilterQuery } from "../../../shared/api/operations.ts";
import { flag } from "../../../shared/api/query-values.ts";
import { countOperations, listOperations, type OperationFilter, operationCursor } from "../../db/queries/operations.ts";
import type { Reach } from "../../db/queries/reach.ts";
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

export const operationRoutes = [listAllOperations];
