import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { GpuStepName } from "../../shared/tasks/gpu-scrub.ts";
import { cleaningStep } from "../accounts/step.ts";

export type GpuStep = CleaningStep & { readonly step: GpuStepName };
type Value = string | number | boolean | null;

/** Makes a cleaning step that fits its schema, because the hub would otherwise refuse the whole result of the task. */
export const gpuStep = (
  step: GpuStepName,
  target: string,
  outcome: CleaningStep["outcome"],
  message: string,
  evidence: Readonly<Record<string, Value | undefined>> = {},
): GpuStep => {
  const known = Object.entries(evidence).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return cleaningStep(step, target, outcome, message, Object.fromEntries(known));
};

export function named(names: readonly string[], most = 10): string {
  const rest = names.length - most;
  return rest > 0 ? `${names.slice(0, most).join(", ")} and ${rest} more` : names.join(", ");
}
