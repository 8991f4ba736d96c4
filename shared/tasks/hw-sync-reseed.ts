import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const RESEED_STEPS = ["credentials", "units", "timer", "sync"] as const;

/**
 * The task `node.hw_sync_reseed` writes MAAS's credentials and units for hardware sync on the host anew, and starts a sync (lifecycle 9.1, decision
 * M3).
 */
export const hwSyncReseed = defineTask({
  type: "node.hw_sync_reseed",
  changes: "host",
  leaseSeconds: 120,
  destructive: false,
  input: z.strictObject({
    system_id: z.string().min(1).max(41),
    /**
     * The base URL of the rack or region with MAAS's metadata, for example `http://rack:5248/MAAS`. The agent uses `maas_url` only if the host itself
     * has no URL of the metadata.
     */
    maas_url: z.url(),
    interval_seconds: z.int().min(60).max(86_400),
    /**
     * When the hub offers the task `node.hw_sync_reseed` to the agent, it inserts the machine's MAAS token into the task's input. In the database row
     * of the task `node.hw_sync_reseed`, the machine's MAAS token is null.
     */
    machine_token: z
      .strictObject({ consumer_key: z.string(), token_key: z.string(), token_secret: z.string() })
      .nullable(),
    /** An order for a plan of `node.hw_sync_reseed` has no MAAS token, because the plan only says which files the agent would write. */
    plan: z.boolean().exactOptional(),
  }),
  result: z.strictObject({
    credentials_written: z.boolean(),
    timer_active: z.boolean(),
    sync_started: z.boolean(),
    endpoint: z.string(),
    /**
     * `interval_seconds`, the interval of the host's hardware sync, is null if an operator's own timer decides the interval. Agents of older releases
     * do not report the interval of the hardware sync.
     */
    interval_seconds: z.int().nullable().optional(),
    /** `steps` is present only in the result of a plan of `node.hw_sync_reseed`, which says what the task would write. */
    steps: cleaningStepsNamed(RESEED_STEPS).exactOptional(),
  }),
  progress: z.strictObject({ step: z.enum(RESEED_STEPS) }),
  errors: {
    token_missing: "retry",
    write_failed: "retry",
    systemd_failed: "retry",
    sync_failed: "retry",
  },
});
