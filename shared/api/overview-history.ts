import { z } from "zod";
import { SiteId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { Timestamp } from "./values.ts";

/** The largest number of hours of history in one answer: 90 days. */
const MOST_HOURS = 2_160;

export const OverviewHistoryQuery = z.strictObject({
  hours: z.coerce.number().int().min(1).max(MOST_HOURS).describe("How many hours back the history begins").default(24),
  site_id: SiteId.describe("Only the nodes and operations of this site").optional(),
});

/**
 * The state of the fleet in the past, at times that lie equally far apart. A time at which no hub ran, so that nobody counted the nodes, has no
 * point.
 */
export const OverviewHistory = z.strictObject({
  /** Seconds between two points. */
  step_seconds: z.int(),
  /** The oldest point is first. */
  points: z.array(
    z.strictObject({
      at: Timestamp,
      /** The number of nodes by status, without the statuses that no node had. */
      nodes: z.partialRecord(NodeStatus, z.int()),
      /** The number of nodes that could take a tenant to whom the allocation gives no root rights. */
      schedulable: z.int(),
      /** The number of failed operations that waited for a person at the time of the point. */
      waiting: z.int(),
    }),
  ),
});
export type OverviewHistory = z.output<typeof OverviewHistory>;
