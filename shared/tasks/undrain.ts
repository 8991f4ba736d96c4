import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

/** Reverts the changes that the task `node.drain` made on the host, so that people can log in. */
export const undrain = defineTask({
  type: "node.undrain",
  changes: "host",
  leaseSeconds: 60,
  destructive: false,
  input: z.strictObject({ reason: z.string().min(1).max(512), plan: z.boolean().exactOptional() }),
  /** `steps` is present only in the result of a plan, which says what the task `node.undrain` would do. */
  result: z.strictObject({ was_draining: z.boolean(), steps: cleaningStepsNamed(["logins"]).exactOptional() }),
  progress: z.null(),
  errors: { unmark_failed: "retry" },
});
