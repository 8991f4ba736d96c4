import { z } from "zod";
import { defineTask } from "./define-task.ts";

/**
 * Marks the host as draining: no new tenant work is let in, and what still runs of tenants is reported (lifecycle 5.2). It ends only
 * when no tenant session is left or its deadline has passed; `force` ends what is left.
 */
export const drain = defineTask({
  type: "node.drain",
  lane: "work",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    reason: z.string().min(1).max(256),
    deadline_seconds: z.int().min(0).max(86_400),
    force: z.boolean(),
  }),
  result: z.strictObject({
    drained: z.boolean(),
    sessions_closed: z.int().min(0),
    remaining_users: z.array(z.string()),
  }),
  progress: z.strictObject({ remaining_users: z.array(z.string()) }),
  errors: { deadline_passed: "fail", mark_failed: "retry", session_survived: "fail" },
});
