import { z } from "zod";
import { NodeId } from "../ids.ts";
import { ResidueSnapshot } from "../residue/snapshot.ts";
import { Timestamp } from "./values.ts";

/**
 * A node's baseline (architecture 14.4) is a snapshot of the host from before the first tenant of a generation. `missing` means that nobody has
 * ordered a baseline of the node, so no turnover can find the node clean. `requested` means that an ordered baseline is not taken yet. `failed` means
 * that the agent could not carry out the newest order for a baseline.
 */
export const BaselineState = z.strictObject({
  state: z.enum(["missing", "requested", "failed", "taken"]),
  generation: z.int(),
  taken_at: Timestamp.nullable(),
  boot_id: z.string().nullable(),
  agent_version: z.string().nullable(),
  /**
   * The residue items that a soft reset compares but that the baseline lacks, because an older agent took the baseline. While the baseline lacks a
   * residue item, no soft reset can find the node clean.
   */
  missing_items: z.array(z.string()),
  /**
   * The residue items, kinds of things that a tenant may leave, that the agent could not read when it took the baseline. While a node's baseline has
   * an unreadable item, no turnover can find the node clean.
   */
  unreadable: z.array(z.strictObject({ item: z.string(), reason: z.string() })),
  requested_at: Timestamp.nullable(),
  requested_by: z.string().nullable(),
  reason: z.string().nullable(),
  /** Why the newest order for a baseline did not lead to a snapshot of the host. */
  problem: z.string().nullable(),
});
export type BaselineState = z.output<typeof BaselineState>;

export const Baseline = z.strictObject({
  node_id: NodeId,
  ...BaselineState.shape,
  snapshot: ResidueSnapshot.nullable(),
});
