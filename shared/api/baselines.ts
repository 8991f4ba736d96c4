import { z } from "zod";
import { NodeId } from "../ids.ts";
import { ResidueSnapshot } from "../residue/snapshot.ts";
import { Timestamp } from "./values.ts";

/**
 * The state of the baseline of a node's generation (architecture 14.4). `missing`: none was ordered, so no turnover can find the node clean.
 * `requested`: the agent has the order, or waits for it. `failed`: the newest order failed. `taken`: there is a snapshot.
 */
export const BaselineState = z.strictObject({
  state: z.enum(["missing", "requested", "failed", "taken"]),
  generation: z.int(),
  taken_at: Timestamp.nullable(),
  boot_id: z.string().nullable(),
  agent_version: z.string().nullable(),
  /** The items that the agent could not read. They make every turnover fail, so the cause must be mended and a new baseline taken. */
  unreadable: z.array(z.strictObject({ item: z.string(), reason: z.string() })),
  requested_at: Timestamp.nullable(),
  requested_by: z.string().nullable(),
  reason: z.string().nullable(),
  /** Why the newest order did not lead to a snapshot. */
  problem: z.string().nullable(),
});
export type BaselineState = z.output<typeof BaselineState>;

export const Baseline = z.strictObject({
  node_id: NodeId,
  ...BaselineState.shape,
  snapshot: ResidueSnapshot.nullable(),
});
