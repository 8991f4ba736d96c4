import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const DRAIN_STEPS = ["logins", "sessions", "terminals", "services"] as const;

/**
 * Drains the host: the host refuses new logins, and the task reports the login sessions that are still open (lifecycle 5.2). The drain task ends when
 * no login session is left or its deadline has passed. With `force`, the drain task ends the login sessions that remain at the deadline.
 * An agent before version 0.2.0 refuses an order with the field `plan`, so the hub sends the field only in an order for a plan.
 */
export const drain = defineTask({
  type: "node.drain",
  changes: "host",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    reason: z.string().min(1).max(256),
    deadline_seconds: z.int().min(0).max(86_400),
    force: z.boolean(),
    plan: z.boolean().exactOptional(),
  }),
  result: z.strictObject({
    drained: z.boolean(),
    sessions_closed: z.int().min(0),
    remaining_users: z.array(z.string()),
    /**
     * `steps` is present only in the result of a plan, which says what the drain would do. In the result of a plan, `remaining_users` are the
     * logged-in users for whom a real run of `node.drain` would wait.
     */
    steps: cleaningStepsNamed(DRAIN_STEPS).exactOptional(),
  }),
  progress: z.strictObject({ remaining_users: z.array(z.string()) }),
  errors: { deadline_passed: "fail", mark_failed: "retry", session_survived: "fail" },
});
