import { z } from "zod";
import { defineTask } from "./define-task.ts";

/** Takes back what `node.drain` left on the host, so that people may log in again. Harmless where nothing was drained. */
export const undrain = defineTask({
  type: "node.undrain",
  lane: "work",
  leaseSeconds: 60,
  destructive: false,
  input: z.strictObject({ reason: z.string().min(1).max(512) }),
  result: z.strictObject({ was_draining: z.boolean() }),
  progress: z.null(),
  errors: { unmark_failed: "retry" },
});
