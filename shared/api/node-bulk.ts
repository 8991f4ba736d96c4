import { z } from "zod";
import { NodeId, SiteId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { Reason } from "./decommissions.ts";
import { countsFailures } from "./extensions.ts";
import { OverrideSource } from "./health-overrides.ts";
import { Rack, Room } from "./locations.ts";
import { BatchRefusal, mustSelect, RefusalGroup, selection } from "./node-selection.ts";
import { Hostname } from "./values.ts";

/**
 * What a bulk request does at once to each of the selected nodes, for example cordon them; for work that takes time, such as a cleaning, the API has
 * batches of decommissions.
 */
const BulkAction = z.discriminatedUnion("verb", [
  z.strictObject({
    verb: z.enum(["cordon", "uncordon", "quarantine", "lift_quarantine", "activate"]),
    reason: Reason,
  }),
  z.strictObject({
    verb: z.literal("remove_health_override"),
    reason: Reason,
    source: OverrideSource.describe("The source of the override that each node loses, as get-node names it"),
  }),
  z.strictObject({
    verb: z.literal("set_location"),
    reason: Reason,
    location: z
      .strictObject({ room: Room.nullable().optional(), rack: Rack.nullable().optional() })
      .refine(({ room, rack }) => room !== undefined || rack !== undefined, "needs a room or a rack")
      .describe(
        "A room or a rack that is absent stays as it is; a node whose rack changes has no unit until it is set",
      ),
  }),
]);
export type BulkAction = z.output<typeof BulkAction>;

/** The request to do one thing, for example to cordon, to many nodes of a site. */
export const NodeBulkCreate = z
  .strictObject({
    site_id: SiteId,
    action: BulkAction.describe("The verb and its reason, as for one node"),
    ...selection,
  })
  .superRefine(mustSelect);
export type NodeBulkCreate = z.output<typeof NodeBulkCreate>;

const Facts = z.record(z.string(), z.union([z.string(), z.int(), z.null()]));
/**
 * The values of a node that the request changes, such as its status: `prior` before the change, `expected` after it. If a node already is as the
 * request wants it, its values before and after the change (`prior` and `expected`) are equal.
 */
export const NodeChange = z.strictObject({ prior: Facts, expected: Facts });
export type NodeChange = z.output<typeof NodeChange>;

export const NodeBulkResult = z.strictObject({
  verb: z.string(),
  /** True if the request asked only for the plan, and nothing was changed. */
  plan: z.boolean(),
  matched: z.int(),
  applied: z.int(),
  refused: z.int().meta(countsFailures),
  /**
   * The nodes that the bulk request changed or, with `plan: true`, would change: each with its status before the change, and with the changed values.
   */
  nodes: z.array(z.strictObject({ node_id: NodeId, hostname: Hostname, node_status: NodeStatus, ...NodeChange.shape })),
  refused_by: z.array(RefusalGroup),
  refusals: z.array(BatchRefusal),
});
export type NodeBulkResult = z.output<typeof NodeBulkResult>;
