import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { GpuStepName } from "../../shared/tasks/gpu-scrub.ts";

export interface GpuResetRequirement {
  /** The number of GPUs that the node has by its SKU. */
  readonly gpus: number;
  /** True if a scrub must also clear the local memory and registers of every GPU, which only AMD's driver offers. */
  readonly cleanerShader: boolean;
}

export interface GpuResetVerdict {
  readonly isClean: boolean;
  /** The reasons why the node's GPUs are not clean, as texts for an operator. `reasons` is empty if the node's GPUs are clean. */
  readonly reasons: readonly string[];
}

/**
 * The steps of a task `node.gpu_scrub` that concern the whole host. After a task `node.gpu_scrub`, the GPUs count as clean only if each step in
 * `OF_HOST` has succeeded.
 */
const OF_HOST: readonly GpuStepName[] = ["gpu_holders", "gpu_services_stop", "gpu_services_start"];
/**
 * The steps of a task `node.gpu_scrub` without which no GPU counts as reset. The sanitization record of a cleaning between two tenants requires each
 * step in `RESET_STEPS`.
 */
export const RESET_STEPS: readonly GpuStepName[] = [...OF_HOST, "gpu_reset", "gpu_verify"];
const SHADER: GpuStepName = "gpu_cleaner_shader";

/**
 * Judges the steps of a task `node.gpu_scrub` (decision C2, level `reset_only`). Every GPU that the node must have needs a successful reset and a
 * successful check after the reset. If a step is missing, the GPUs do not count as clean, because only evidence makes a GPU clean.
 */
export function gpuResetVerdict(steps: readonly CleaningStep[], required: GpuResetRequirement): GpuResetVerdict {
  const succeeded = (name: GpuStepName): ReadonlySet<string> =>
    new Set(steps.filter(({ step, outcome }) => step === name && outcome === "ok").map(({ target }) => target));
  const reset = succeeded("gpu_reset");
  const shader = succeeded(SHADER);
  const clean = [...succeeded("gpu_verify")].filter((gpu) => reset.has(gpu));
  const isAllowed = ({ step, outcome }: CleaningStep): boolean =>
    outcome === "ok" || (step === SHADER && outcome === "unsupported" && !required.cleanerShader);
  const reasons = [
    ...steps
      .filter((one) => !isAllowed(one))
      .map(({ step, target, outcome, message }) => `${step} of ${target} is ${outcome}: ${message}`),
    ...OF_HOST.filter((name) => succeeded(name).size === 0).map((name) => `The step ${name} did not succeed.`),
    ...(clean.length < required.gpus ? [`${clean.length} of ${required.gpus} GPUs were reset and found healthy.`] : []),
    ...(required.cleanerShader && clean.some((gpu) => !shader.has(gpu))
      ? ["The local memory of some GPUs was not cleared."]
      : []),
  ];
  return { isClean: reasons.length === 0, reasons };
}
