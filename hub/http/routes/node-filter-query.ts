import type { NodeFilterQuery } from "../../../shared/api/node-filter.ts";
import type { NodeFilter } from "../../db/queries/node-filter.ts";
import type { Reach } from "../../db/queries/reach.ts";

/** Returns the node filter of a request's query, limited to the nodes that the caller may see. */
export const toNodeFilter = (query: NodeFilterQuery, reach: Reach): NodeFilter => ({
  reach,
  statuses: query.status,
  schedulable: query.schedulable === undefined ? undefined : query.schedulable === "true",
  siteId: query.site_id,
  skus: query.sku_id,
  room: query.room,
  rack: query.rack,
  placed: query.placed === undefined ? undefined : query.placed === "true",
  hostname: query.hostname,
  hostnamePrefix: query.hostname_prefix,
  address: query.address,
  failureClasses: query.failure_class,
  condition: query.condition,
  healthOverride: query.health_override,
  search: query.search,
  deleted: query.include_deleted === "true",
});
