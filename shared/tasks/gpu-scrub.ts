import { z } from "zod";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const GPU_VENDORS = ["nvidia", "amd"] as const;
export type GpuVendor = (typeof GPU_VENDORS)[number];

/** The means to free GPUs that the agent itself may try, from the weakest to the strongest (decision C3). */
const GPU_RUNGS = ["reset", "reload"] as const;

/** What the host needs after the task, which only the hub can arrange. */
export const GPU_NEEDS = ["none", "reboot", "power_cycle"] as const;
export type GpuNeed = (typeof GPU_NEEDS)[number];

/**
 * The steps of the cleaning of GPUs. The step `gpu_verify` exists once for each GPU and decides about this GPU. A GPU that is missing also has a step
 * `gpu_verify`, which failed.
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

/** With more GPUs the result would have more steps than a task's result may have. */
const MOST_GPUS = 32;

/**
 * Resets the GPUs of the host and reports their state before and after: the claim level `reset_only` (decision C2). The task is destructive: it ends
 * the processes that hold a GPU. After an interruption a repetition could end processes of a service that was started again meanwhile, so the hub
 * decides about a repetition.
 */
export const gpuScrub = defineTask({
  type: "node.gpu_scrub",
  lane: "work",
  // The reset of one group of GPUs may take five minutes, and cannot tell progress meanwhile.
  leaseSeconds: 900,
  destructive: true,
  worksOutside: true,
  input: z.strictObject({
    vendor: z.enum(GPU_VENDORS),
    expected_gpus: z.int().min(1).max(MOST_GPUS),
    /** The means that the policy allows. The agent tries them from the weakest to the strongest. */
    rungs: z.array(z.enum(GPU_RUNGS)).min(1).max(GPU_RUNGS.length),
    /** Whether the agent may end processes that hold a GPU. Otherwise it only names them. */
    kill_holders: z.boolean(),
    /** With `plan: true` the agent only reads. */
    plan: z.boolean(),
  }),
  result: z.strictObject({
    steps: cleaningStepsNamed(GPU_STEPS),
    needs: z.enum(GPU_NEEDS),
    /** The boot in which the GPUs were cleaned. After a reboot a tenant may have used the GPUs again. */
    boot_id: z.string().min(1).max(64),
  }),
  progress: z.strictObject({ step: z.enum(GPU_STEPS) }),
  /**
   * The task reports an error only if it has changed nothing, or if its process was lost. Every other failure is a failed step, so that its evidence
   * is kept.
   */
  errors: {
    /** The vendor's tool is not installed. */
    tool_missing: "fail",
    /** A program that talks to the driver hangs, in this run or since an earlier one. Only a reboot helps. */
    driver_wedged: "fail",
    /** The state of the GPUs could not be read, so the agent could not tell what it changes. */
    state_unreadable: "fail",
    /** The services that an earlier run stopped could not be started. */
    services_not_restored: "fail",
    /** The process of the cleaning ended without a result. What it had stopped was started again, as far as the message says nothing else. */
    work_lost: "fail",
    /** No systemd runs on the host that would enforce the deadline of a program that hangs in the driver. */
    systemd_missing: "fail",
  },
});
