import { z } from "zod";
import { defineTask } from "./define-task.ts";

/** The task `node.heartbeat_check` tests all that tasks need: queue, lease, signature, journal, handler, result (lifecycle 6.3). */
export const heartbeatCheck = defineTask({
  type: "node.heartbeat_check",
  changes: "nothing",
  leaseSeconds: 30,
  destructive: false,
  input: z.strictObject({ nonce: z.string().min(1).max(128) }),
  result: z.strictObject({
    nonce: z.string(),
    boot_id: z.string(),
    uptime_seconds: z.number(),
    agent_version: z.string(),
  }),
  progress: z.null(),
  errors: {},
});
