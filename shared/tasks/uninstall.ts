import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

/**
 * The uninstall task removes the agent and Muster's files from the host (lifecycle 5.4, 5.8). The run of the task `node.uninstall` only checks that
 * the agent can remove Muster from the host, and answers the hub. The agent begins to remove Muster when the hub has accepted the answer of the
 * uninstall task. If the hub cancels the uninstall task before it has accepted the task's answer, the host stays unchanged. After the result of a
 * plan of the task `node.uninstall`, the agent removes nothing, even if a hub accepts the result.
 */
export const uninstall = defineTask({
  type: "node.uninstall",
  changes: "host",
  leaseSeconds: 120,
  destructive: true,
  input: z.strictObject({ reason: z.string().min(1).max(512), plan: z.boolean().exactOptional() }),
  result: z.strictObject({
    removes: z.array(z.string().max(256)).max(200),
    /** `steps` is present only in the result of a plan, which says what the task `node.uninstall` would remove. */
    steps: cleaningStepsNamed(["remove"]).exactOptional(),
  }),
  progress: z.null(),
  errors: { not_removable: "fail" },
});
