import { z } from "zod";
import { defineTask } from "./define-task.ts";

/**
 * The task `node.hw_sync_reseed` rewrites MAAS's hardware-sync credentials and units on the deployed host and starts one sync at once (lifecycle 9.1,
 * decision M3). The hub reads MAAS's token when it dispatches a hardware-sync task, and never stores the token: the task's row holds `machine_token:
 * null`.
 */
export const hwSyncReseed = defineTask({
  type: "node.hw_sync_reseed",
  lane: "work",
  leaseSeconds: 120,
  destructive: false,
  input: z.strictObject({
    system_id: z.string().min(1).max(41),
    /**
     * The base URL of the rack or region with MAAS's metadata, for example `http://rack:5248/MAAS`. The agent uses the hub's `maas_url` only when the
     * host has no metadata URL of its own.
     */
    maas_url: z.url(),
    interval_seconds: z.int().min(60).max(86_400),
    /**
     * The hub inserts the machine's MAAS token into the task's input when it offers the task to the agent. In the task's database row, the machine's
     * MAAS token is null.
     */
    machine_token: z
      .strictObject({ consumer_key: z.string(), token_key: z.string(), token_secret: z.string() })
      .nullable(),
  }),
  result: z.strictObject({
    credentials_written: z.boolean(),
    timer_active: z.boolean(),
    sync_started: z.boolean(),
    endpoint: z.string(),
    /**
     * The new interval of the host's hardware sync. `interval_seconds` is null when an operator's own timer decides the interval. Agents of older
     * releases do not report the interval.
     */
    interval_seconds: z.int().nullable().optional(),
  }),
  progress: z.strictObject({ step: z.enum(["credentials", "units", "timer", "sync"]) }),
  errors: {
    token_missing: "retry",
    write_failed: "retry",
    systemd_failed: "retry",
    sync_failed: "retry",
  },
});
