import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "../residue/items.ts";
import { ResidueSnapshot, ResidueTenant } from "../residue/snapshot.ts";
import { defineTask } from "./define-task.ts";

/**
 * Reads the state of the host as a residue snapshot (architecture 14.4). The task `node.validate_clean` only reads, so `plan` makes no difference to
 * the task. The task `node.validate_clean` succeeds when the agent has tried to read all residue items, even if some items are unreadable. The hub
 * compares the residue snapshot with the node's baseline.
 */
export const validateClean = defineTask({
  type: "node.validate_clean",
  lane: "work",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    /** The account of the tenant whose allocation ends, or null for a baseline. */
    allocation: ResidueTenant.nullable(),
    plan: z.boolean(),
  }),
  result: z.strictObject({ boot_id: z.string().min(1).max(64), snapshot: ResidueSnapshot }),
  progress: z.strictObject({
    /** The residue item that the agent reads now. */
    item: z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]]),
    items_read: z.int().min(0).max(1_000),
    items: z.int().min(0).max(1_000),
  }),
  errors: { snapshot_failed: "retry" },
});
