import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { GpuStepName } from "../../shared/tasks/gpu-scrub.ts";

export type GpuStep = CleaningStep & { readonly step: GpuStepName };
type Value = string | number | boolean | null;

const MOST_EVIDENCE = 256;
const MOST_MESSAGE = 512;

const short = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/** Makes a cleaning step whose texts have at most the length that a step may have. */
export const gpuStep = (
  step: GpuStepName,
  target: string,
  outcome: CleaningStep["outcome"],
  message: string,
  evidence: Readonly<Record<string, Value | undefined>> = {},
): GpuStep => ({
  step,
  target,
  outcome,
  message: short(message, MOST_MESSAGE),
  evidence: Object.fromEntries(
    Object.entries(evidence).flatMap(([name, value]) => {
      if (value === undefined) return [];
      return [[name, typeof value === "string" ? short(value, MOST_EVIDENCE) : value]];
    }),
  ),
});

/** Joins names for a message, and says how many are left out if there are more than `most`. */
export function named(names: readonly string[], most = 10): string {
  const rest = names.length - most;
  return rest > 0 ? `${names.slice(0, most).join(", ")} and ${rest} more` : names.join(", ");
}
