import { z } from "zod";
import { NodeId } from "../ids.ts";
import { ResidueSnapshot } from "../residue/snapshot.ts";
import { Timestamp } from "./values.ts";

/**
 * A node's baseline (architecture 14.4) is a snapshot of the host from before the first tenant of a generation. `missing` means that nobody has
 * ordered a baseline, a snapshot of the clean host, so no cleaning after a tenant can find the node clean. `requested` means that the agent has not
 * yet taken the baseline, a snapshot of the clean host, that was ordered. `failed` means that the agent could not carry out the newest order for a
 * baseline, a snapshot of the clean host.
 */
export const BaselineState = z.strictObject({
  state: z.enum(["missing", "requested", "failed", "taken"]),
  generation: z.int(),
  taken_at: Timestamp.nullable(),
  boot_id: z.string().nullable(),
  agent_version: z.string().nullable(),
  /**
   * The residue items (kinds of things that a tenant may leave) that a soft reset compares but that the baseline lacks, because an older agent took
   * this snapshot. While the snapshot of the clean host lacks a kind of thing that a soft reset compares, no soft reset can find the node clean.
   */
  missing_items: z.array(z.string()),
  /**
   * The residue items (kinds of things that a tenant may leave) that the agent could not read when it took the baseline, the snapshot of the clean
   * host. While a part of the snapshot of the clean host is unreadable, no cleaning after a tenant can find the node clean.
   */
  unreadable: z.array(z.strictObject({ item: z.string(), reason: z.string() })),
  requested_at: Timestamp.nullable(),
  requested_by: z.string().nullable(),
  reason: z.string().nullable(),
  /** Why the newest order for a baseline, a snapshot of the clean host, did not lead to a snapshot. */
  problem: z.string().nullable(),
});
export type BaselineState = z.output<typeof BaselineState>;

export const Baseline = z.strictObject({
  node_id: NodeId,
  ...BaselineState.shape,
  snapshot: ResidueSnapshot.nullable(),
});
