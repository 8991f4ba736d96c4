import { z } from "zod";

/** The coarse node states of state model 3.1; a workflow stage is never one of them (state model 4.3). */
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
