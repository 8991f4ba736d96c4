import { z } from "zod";

/** A workflow stage is never a node status (state model 4.3). */
export const NODE_STATUSES = [
  "bootstrap_issued",
  "enrolling",
  "active",
  "offline",
  "quarantined",
  "draining",
  "retired",
  "removing",
  "deleted",
] as const;
export const NodeStatus = z.enum(NODE_STATUSES);
export type NodeStatus = z.output<typeof NodeStatus>;
