import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const GPU_VENDORS = ["nvidia", "amd"] as const;
export type GpuVendor = (typeof GPU_VENDORS)[number];

/** The means by which the agent itself may free GPUs from a tenant's work, from the weakest to the strongest (decision C3). */
const GPU_RUNGS = ["reset", "reload"] as const;

/** What the host still needs after the task `node.gpu_scrub`, and what only the hub can order: nothing, a reboot or a power cycle. */
export const GPU_NEEDS = ["none", "reboot", "power_cycle"] as const;
export type GpuNeed = (typeof GPU_NEEDS)[number];

/**
 * The steps of the task `node.gpu_scrub`. Each GPU has one step `gpu_verify`, which decides whether the GPU counts as reset. A missing GPU also has a
 * step `gpu_verify`, with the outcome `failed`.
 */
export const GPU_STEPS = [
  "gpu_switches",
  "gpu_services_stop",
  "gpu_holders",
  "gpu_reset",
  "gpu_cleaner_shader",
  "gpu_verify",
  "gpu_services_start",
] as const;
export type GpuStepName = (typeof GPU_STEPS)[number];

/** With more than 32 GPUs, the task would have more steps than a task's result may have. */
const MOST_GPUS = 32;

/**
 * Resets the GPUs of the host and reports their state before and after the reset: the claim level `reset_only` (decision C2). The task
 * `node.gpu_scrub` is destructive, because it ends the processes that hold a GPU. After an interruption, a repetition of the task could end processes
 * of a restarted service, so the hub decides whether to repeat the task.
 */
export const gpuScrub = defineTask({
  type: "node.gpu_scrub",
  lane: "work",
  // The reset of one group of GPUs may take five minutes, during which the task can report no progress.
  leaseSeconds: 900,
  destructive: true,
  worksOutside: true,
  input: z.strictObject({
    vendor: z.enum(GPU_VENDORS),
    expected_gpus: z.int().min(1).max(MOST_GPUS),
    /** The means to free GPUs that the hub allows, which the agent tries from the weakest to the strongest. */
    rungs: z.array(z.enum(GPU_RUNGS)).min(1).max(GPU_RUNGS.length),
    /**
     * If `kill_holders` is true, the agent may end processes that hold a GPU. If `kill_holders` is false, the agent only names the processes that
     * hold a GPU.
     */
    kill_holders: z.boolean(),
    /** With `plan: true`, the agent only reads the state of the GPUs. */
    plan: z.boolean(),
  }),
  result: z.strictObject({
    steps: cleaningStepsNamed(GPU_STEPS),
    needs: z.enum(GPU_NEEDS),
    /**
     * The boot id of the host when the agent cleaned the GPUs. If the host has rebooted since the cleaning, a tenant may have used the GPUs since
     * then.
     */
    boot_id: z.string().min(1).max(64),
  }),
  progress: z.strictObject({ step: z.enum(GPU_STEPS) }),
  /**
   * The task `node.gpu_scrub` reports an error only if the task has changed nothing, or if the task's process was lost. A failure after the first
   * change to the host is a failed step in the task's result, so that the hub gets the step's evidence.
   */
  errors: {
    /** The tool of the GPU vendor, for example `nvidia-smi`, is not installed on the host. */
    tool_missing: "fail",
    /**
     * A program that talks to the GPU driver hangs, in this run of the task or since an earlier run. Only a reboot of the host ends a program that
     * hangs in the GPU driver.
     */
    driver_wedged: "fail",
    /** The agent could not read the state of the GPUs before the cleaning, so it has changed nothing. */
    state_unreadable: "fail",
    /** The agent could not start the services that an earlier run of the task had stopped. */
    services_not_restored: "fail",
    /**
     * The worker process that cleans the GPUs ended without a result. The agent has tried to start again the services that the worker process had
     * stopped. The error's message says whether the services run again.
     */
    work_lost: "fail",
    /** The host does not run systemd, which would enforce the deadline of a program that hangs in the GPU driver. */
    systemd_missing: "fail",
  },
});
