import { z } from "zod";
import { NodeId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { API_ERRORS, type ApiErrorCode } from "./errors.ts";
import { OverrideSource } from "./health-overrides.ts";
import { Rack, Room } from "./locations.ts";
import { ConditionIs, FailureClass } from "./node-filter.ts";
import { SkuId } from "./sites.ts";
import { Hostname, HostnamePrefix, IpAddress } from "./values.ts";

/**
 * The largest number of nodes that one request selects. The hub locks all nodes of a batch of decommissions in one transaction. Until the transaction
 * that begins a batch of decommissions ends, clients of the event stream see no newer events.
 */
export const MOST_NODES = 1000;

const MOST_VALUES = 20;
/** A field of the node filter that has one value or a list of values; a node matches the field if the node has one of these values. */
const oneOrList = <T extends z.ZodType>(item: T) => z.union([item, z.array(item).min(1).max(MOST_VALUES)]);

/**
 * A request takes the nodes of its site that match every field of the filter; a field that is absent excludes no node. Each field of the node filter
 * in a request means the same as the query parameter of that name in the API's list of nodes.
 */
export const NodeFilter = z.strictObject({
  status: oneOrList(NodeStatus).describe("Without it, nodes of every status except deleted").optional(),
  sku_id: oneOrList(SkuId).optional(),
  schedulable: z.boolean().describe("Whether the node can take a tenant without root rights").optional(),
  room: Room.optional(),
  rack: Rack.optional(),
  placed: z.boolean().describe("Whether the node has a rack and a unit").optional(),
  hostname: Hostname.optional(),
  address: IpAddress.describe("An address of the host or of its BMC").optional(),
  failure_class: oneOrList(FailureClass)
    .describe("The class of a failure that waits for a person at the node")
    .optional(),
  condition: ConditionIs.optional(),
  health_override: OverrideSource.describe("The source of a health override of the node, e.g. restore").optional(),
  search: z.string().trim().min(1).max(100).describe("As the search of the list of nodes").optional(),
  hostname_prefix: HostnamePrefix.describe("The beginning of the hostnames, for example of a rack's hosts").optional(),
});
export type NodeFilter = z.output<typeof NodeFilter>;

/** The fields by which a request selects nodes of a site: by their ids, or by a filter with the number of nodes that it should match. */
export const selection = {
  node_ids: z.array(NodeId).min(1).max(MOST_NODES).describe("The nodes; either these or a filter").optional(),
  filter: NodeFilter.describe("Takes the nodes of the site that match every field").optional(),
  expected_count: z
    .int()
    .min(1)
    .max(MOST_NODES)
    .describe("How many nodes the filter matches; if it matches another number, nothing begins")
    .optional(),
  plan: z
    .boolean()
    .describe("Only say which nodes would be taken and which refused, and change nothing")
    .default(false),
};
const Selection = z.strictObject(selection);
type Selection = z.output<typeof Selection>;

export function mustSelect(
  { node_ids: ids, filter, expected_count: expected, plan }: Selection,
  ctx: z.RefinementCtx,
): void {
  const refuse = (field: string, message: string): void => ctx.addIssue({ code: "custom", path: [field], message });
  if ((ids === undefined) === (filter === undefined)) refuse("node_ids", "name the nodes by node_ids or by filter");
  if (ids !== undefined && new Set(ids).size !== ids.length) refuse("node_ids", "names a node twice");
  if (ids !== undefined && expected !== undefined) refuse("expected_count", "belongs to a filter");
  if (filter !== undefined && expected === undefined && !plan)
    refuse("expected_count", "is needed with a filter; a request with plan says how many nodes the filter matches");
}

/** A node that a request selected but that refuses what the request asks for, with the error that a request for this node alone would get. */
export const BatchRefusal = z.strictObject({
  node_id: NodeId,
  /** `hostname` is null if the site has no node with the given id. */
  hostname: Hostname.nullable(),
  error_code: z.enum(Object.keys(API_ERRORS) as [ApiErrorCode, ...ApiErrorCode[]]),
  message: z.string(),
});
export type BatchRefusal = z.output<typeof BatchRefusal>;

/**
 * The refused nodes of one reason. In the reason why nodes refused a bulk request, `<host>` and `<id>` replace the hostnames and ids, which differ
 * from node to node.
 */
export const RefusalGroup = z.strictObject({
  error_code: z.enum(Object.keys(API_ERRORS) as [ApiErrorCode, ...ApiErrorCode[]]),
  reason: z.string(),
  count: z.int(),
});

const ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

function reasonOf({ message, hostname }: BatchRefusal): string {
  const reason = message.replace(ID, "<id>");
  if (hostname === null) return reason;
  const name = hostname.replaceAll(".", "\\.");
  return reason.replace(new RegExp(`(?<![a-z0-9.-])${name}(?![a-z0-9-])`, "g"), "<host>");
}

/** Returns the refused nodes in groups of the same reason, with the most frequent reason first. */
export function groupRefusals(refusals: readonly BatchRefusal[]): z.output<typeof RefusalGroup>[] {
  const groups = Map.groupBy(refusals, (refusal) => `${refusal.error_code} ${reasonOf(refusal)}`);
  return [...groups.values()]
    .flatMap(([first, ...others]) =>
      first === undefined ? [] : { error_code: first.error_code, reason: reasonOf(first), count: others.length + 1 },
    )
    .sort((a, b) => b.count - a.count);
}
