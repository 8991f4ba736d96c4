import { z } from "zod";
import { defineTask } from "./define-task.ts";

/**
 * The task that removes the agent and Muster's files from the host (lifecycle 5.4, 5.8). The uninstall task itself only checks that the removal is
 * possible, and answers. The removal of Muster begins when the hub has accepted the uninstall task's answer. A cancel of the uninstall task leaves
 * the host unchanged if the hub has not yet accepted the task's answer.
 */
export const uninstall = defineTask({
  type: "node.uninstall",
  lane: "work",
  leaseSeconds: 120,
  destructive: true,
  effectOnceAccepted: true,
  input: z.strictObject({ reason: z.string().min(1).max(512) }),
  result: z.strictObject({
    /** The paths on the host that the uninstall will remove. */
    removes: z.array(z.string().max(256)).max(200),
  }),
  progress: z.null(),
  errors: { not_removable: "fail" },
});
