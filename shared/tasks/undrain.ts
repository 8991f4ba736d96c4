import { z } from "zod";
import { defineTask } from "./define-task.ts";

/** Reverts the changes that the task `node.drain` made on the host, so that people can log in. */
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
