import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "../residue/items.ts";
import { ResidueSnapshot, ResidueTenant } from "../residue/snapshot.ts";
import { defineTask } from "./define-task.ts";

/**
 * The agent reads the state of the host as a residue snapshot (architecture 14.4). Because the task `node.validate_clean` only reads, its option
 * `plan` makes no difference. The task `node.validate_clean` succeeds when the agent has tried to read all residue items, even if some items are
 * unreadable. The hub compares the residue snapshot with the node's baseline, the snapshot from before the first tenant.
 */
export const validateClean = defineTask({
  type: "node.validate_clean",
  changes: "nothing",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    /**
     * `allocation` names the account of the tenant whose allocation ends; it is null if the snapshot becomes the node's baseline, from before the
     * first tenant.
     */
    allocation: ResidueTenant.nullable(),
    plan: z.boolean(),
  }),
  result: z.strictObject({ boot_id: z.string().min(1).max(64), snapshot: ResidueSnapshot }),
  progress: z.strictObject({
    item: z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]]),
    items_read: z.int().min(0).max(1_000),
    items: z.int().min(0).max(1_000),
  }),
  errors: { snapshot_failed: "retry" },
});
