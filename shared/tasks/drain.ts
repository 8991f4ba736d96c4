import { z } from "zod";
import { defineTask } from "./define-task.ts";

/**
 * Drains the host: the host refuses new logins, and the task reports the login sessions that are still open (lifecycle 5.2). The drain task ends when
 * no login session is left or its deadline has passed. With `force`, the drain task ends the login sessions that remain at the deadline.
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
