import { z } from "zod";
import { Inventory } from "../inventory.ts";
import { ReportedCondition } from "../readiness.ts";
import { defineTask } from "./define-task.ts";

/**
 * The task `node.check_hardware` looks at the host's hardware now and changes nothing. Before the node takes a tenant, the hub compares the inventory
 * in the result of the task `node.check_hardware` with the node's SKU (decision H2).
 */
export const checkHardware = defineTask({
  type: "node.check_hardware",
  changes: "nothing",
  leaseSeconds: 600,
  destructive: false,
  input: z.strictObject({}),
  result: z.strictObject({
    boot_id: z.string().min(1).max(64),
    inventory: Inventory,
    /** Whether the agent could count the GPUs on the PCI bus, so that the inventory's list of GPUs is complete. */
    gpus_counted: z.boolean(),
    /** The conditions `hardware.*` and `health.*` as the agent found them during the task. */
    conditions: z.array(ReportedCondition).max(32),
  }),
  progress: z.null(),
  errors: {},
});
