import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const GPU_VENDORS = ["nvidia", "amd"] as const;
export type GpuVendor = (typeof GPU_VENDORS)[number];

/** The means by which the agent itself may free GPUs from a tenant's work, from the weakest to the strongest (decision C3). */
export const GPU_RUNGS = ["reset", "reload"] as const;
export type GpuRung = (typeof GPU_RUNGS)[number];

/**
 * The profile names the strongest means by which a turnover (the cleaning between two tenants) may free GPUs from the tenant's work. The hub orders a
 * power cycle of the host in MAAS.
 */
export const GPU_RESET_MEANS = [...GPU_RUNGS, "power_cycle"] as const;
export type GpuResetMeans = (typeof GPU_RESET_MEANS)[number];

/** After the task `node.gpu_scrub`, the host may still need a reboot or a power cycle, which only the hub can order. */
export const GPU_NEEDS = ["none", "reboot", "power_cycle"] as const;
export type GpuNeed = (typeof GPU_NEEDS)[number];

/**
 * The step `gpu_verify` decides for each GPU whether the task `node.gpu_scrub` has reset the GPU. A GPU that is missing on the host also has a step
 * `gpu_verify`, with the outcome `failed`.
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

/** With more than 32 GPUs, the task `node.gpu_scrub` would have more cleaning steps than a task's result may have. */
const MOST_GPUS = 32;

/**
 * Resets the GPUs of the host, which supports at most the claim level `reset_only` (decision C2), and reports their state before and after. The task
 * `node.gpu_scrub` is destructive, because it ends the processes that hold a GPU. If a `node.gpu_scrub` was interrupted, the hub decides whether to
 * repeat the task, because a repetition could end processes of a restarted service.
 */
export const gpuScrub = defineTask({
  type: "node.gpu_scrub",
  changes: "host",
  // The reset of one group of GPUs may take five minutes, during which the task can report no progress.
  leaseSeconds: 900,
  destructive: true,
  input: z.strictObject({
    vendor: z.enum(GPU_VENDORS),
    expected_gpus: z.int().min(1).max(MOST_GPUS),
    /** The means by which the hub allows the agent to free GPUs, from the weakest to the strongest. */
    rungs: z.array(z.enum(GPU_RUNGS)).min(1).max(GPU_RUNGS.length),
    /**
     * If `kill_holders` is true, the agent may end processes that hold a GPU. If `kill_holders` is false, the agent only names the processes that
     * hold a GPU.
     */
    kill_holders: z.boolean(),
    plan: z.boolean(),
  }),
  result: z.strictObject({
    steps: cleaningStepsNamed(GPU_STEPS),
    needs: z.enum(GPU_NEEDS),
    /**
     * The boot id of the host at the time when the agent cleaned the GPUs. If the host has rebooted since the cleaning, a tenant may have used the
     * GPUs since then.
     */
    boot_id: z.string().min(1).max(64),
  }),
  progress: z.strictObject({ step: z.enum(GPU_STEPS) }),
  /**
   * The task `node.gpu_scrub` reports an error only if the task has changed nothing, or if the task's process was lost. After its first change to the
   * host, the task `node.gpu_scrub` reports a failure as a failed step of its result. The hub gets the failed step's evidence.
   */
  errors: {
    /** The tool of the GPU vendor, for example `nvidia-smi`, is not installed on the host. */
    tool_missing: "fail",
    /**
     * A program that talks to the GPU driver has hung since this run or an earlier run of the task. Only a reboot of the host ends a program that
     * hangs in the GPU driver.
     */
    driver_wedged: "fail",
    /** The agent has changed nothing, because it could not read the state of the GPUs before the cleaning. */
    state_unreadable: "fail",
    /** The agent could not start services of the host that an earlier run of the task `node.gpu_scrub` had stopped. */
    services_not_restored: "fail",
    /**
     * The worker process that cleans the GPUs ended without a result. The agent has tried to start the services that the worker process had stopped
     * before its own end. The message of the error `work_lost` says whether the services that the worker process had stopped run again.
     */
    work_lost: "fail",
    /** The host does not run systemd, which would enforce the deadline of a program that hangs in the GPU driver. */
    systemd_missing: "fail",
  },
});
