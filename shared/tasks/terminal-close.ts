import { z } from "zod";
import { LoginUser } from "../linux-user.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const TERMINAL_STEPS = ["sessions", "terminals"] as const;

/**
 * Ends the login sessions and the processes on terminals of one user, or of all human users if `login_user` is null. The task `terminal.close` does
 * not prevent a new login; the task `node.drain` does. The task `terminal.close` is not destructive, because a second run finds only sessions that
 * are still open.
 */
export const terminalClose = defineTask({
  type: "terminal.close",
  changes: "host",
  leaseSeconds: 120,
  destructive: false,
  input: z.strictObject({ login_user: LoginUser.nullable(), plan: z.boolean() }),
  result: z.strictObject({ sessions_closed: z.int().min(0), steps: cleaningStepsNamed(TERMINAL_STEPS) }),
  progress: z.null(),
  errors: {
    /** A login session or a process on a terminal did not end. */
    sessions_survive: "fail",
  },
});
