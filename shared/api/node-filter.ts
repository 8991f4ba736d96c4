import { z } from "zod";
import { FAILURE_CLASSES } from "../failures.ts";
import { SiteId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { OverrideSource } from "./health-overrides.ts";
import { Rack, Room } from "./locations.ts";
import { flag, oneOrMore } from "./query-values.ts";
import { SkuId } from "./sites.ts";
import { Hostname, HostnamePrefix, IpAddress } from "./values.ts";

/** A condition and one of its values, for example `agent.healthy:False`. */
export const ConditionIs = z
  .string()
  .regex(
    /^[a-z][a-z0-9_.-]{0,62}:(True|False|Unknown)$/,
    "must be a condition type, a colon, and True, False or Unknown",
  )
  .describe(
    "A condition of the node's present generation and its value, e.g. agent.healthy:False; a stale condition counts as Unknown",
  );

export const FailureClass = z.enum(FAILURE_CLASSES as [string, ...string[]]);

/** The filters of all routes that list or count nodes. A node is listed or counted if it matches every filter in the request. */
export const nodeFilterQuery = {
  status: oneOrMore(NodeStatus, "The status of the node").optional(),
  schedulable: flag("Whether the node can take a tenant without root rights").optional(),
  site_id: SiteId.optional(),
  sku_id: oneOrMore(SkuId, "The SKU of the node").optional(),
  room: Room.optional(),
  rack: Rack.optional(),
  placed: flag("Whether the node has a rack and a unit").optional(),
  hostname: Hostname.optional(),
  hostname_prefix: HostnamePrefix.optional(),
  address: IpAddress.describe("An address of the host or of its BMC").optional(),
  failure_class: oneOrMore(FailureClass, "The class of a failure that waits for a person at the node").optional(),
  condition: ConditionIs.optional(),
  health_override: OverrideSource.describe("The source of a health override of the node, e.g. restore").optional(),
  search: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .describe(
      "A part of the hostname; the beginning of an address or of a MAAS system id; a whole MAC address, serial number of the system or of a disk, system UUID or asset tag",
    )
    .optional(),
  include_deleted: flag("Also deleted nodes").default("false"),
};
export const NodeFilterQuery = z.strictObject(nodeFilterQuery);
export type NodeFilterQuery = z.output<typeof NodeFilterQuery>;

const SORTED_BY = [
  "hostname",
  "status",
  "sku_id",
  "location",
  "created_at",
  "updated_at",
  "last_agent_contact_at",
] as const;
export type NodeSortKey = (typeof SORTED_BY)[number];
const SORTS = [...SORTED_BY, ...SORTED_BY.map((key) => `-${key}` as const)] as const;
export type NodeSort = (typeof SORTS)[number];
export const NodeSort = z.enum(SORTS).describe("The order of the list; a minus before the name reverses it");

/** A facet is a field of nodes for which the API counts the nodes with each value; the most frequent value is first. */
const Facet = z.strictObject({
  values: z.array(z.strictObject({ value: z.string(), count: z.int() })),
  /** The number of values of the facet (a field by which nodes are counted) that the API's answer leaves out. */
  more: z.int(),
});

export const FACETS = [
  "status",
  "schedulable",
  "site_id",
  "sku_id",
  "room",
  "rack",
  "failure_class",
  "condition",
] as const;
export type FacetName = (typeof FACETS)[number];

/**
 * For each value of each facet (a field by which nodes are counted), the number of nodes that the list of nodes would have if the request filtered
 * this field by this value and kept its other filters.
 */
export const NodeFacets = z.strictObject({
  /** The number of nodes that match all filters of the request. */
  total: z.int(),
  facets: z.strictObject(Object.fromEntries(FACETS.map((name) => [name, Facet])) as Record<FacetName, typeof Facet>),
});
export type NodeFacets = z.output<typeof NodeFacets>;
