import { type ConditionTypeOf, NOT_OBSERVED } from "../../shared/condition-types.ts";
import type { ConditionStatus } from "../../shared/readiness.ts";

/** The types of the conditions that the agent's checks of its host report. */
export type HealthType = Extract<ConditionTypeOf<"agent">, `hardware.${string}` | `health.${string}`>;

/** The result of one check of the host for one condition. */
export interface Judged {
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}
export type Findings = Readonly<Partial<Record<HealthType, Judged>>>;

const MOST_NAMED = 6;
const MOST_MESSAGE = 1000;

export const fine = (message: string, reason = "Healthy"): Judged => ({ status: "True", reason, message });

export const fault = (reason: string, faults: readonly string[]): Judged => ({
  status: "False",
  reason,
  message: named(faults),
});

/**
 * The result of a check if a tool, a file of the kernel or a part of the hardware that the check needs is missing. A state that the agent cannot
 * observe is reported as information, and never counts as healthy.
 */
export const notObserved = (message: string): Judged => ({
  status: "Unknown",
  reason: NOT_OBSERVED,
  message: message.slice(0, MOST_MESSAGE),
});

/** The result of a check if an installed tool did not answer as it should, so that nobody knows whether the hardware is healthy. */
export const unreadable = (message: string): Judged => ({
  status: "Unknown",
  reason: "Unreadable",
  message: message.slice(0, MOST_MESSAGE),
});

/** Joins the first `MOST_NAMED` findings in one text, and adds the number of the other findings. */
export function named(all: readonly string[]): string {
  const more = all.length > MOST_NAMED ? `; and ${all.length - MOST_NAMED} more` : "";
  return `${all.slice(0, MOST_NAMED).join("; ").slice(0, MOST_MESSAGE)}${more}`;
}

const badness = ({ status, reason }: Judged): number =>
  status === "False" ? 3 : status === "True" ? 0 : reason === NOT_OBSERVED ? 1 : 2;

/**
 * Several probes, for example of the GPU driver and of the kernel's log, may each report a part of one condition. Of several results for one
 * condition, the worst becomes the condition.
 */
export const worstOf = (parts: readonly Judged[]): Judged | null =>
  parts.reduce<Judged | null>((worst, one) => (worst === null || badness(one) > badness(worst) ? one : worst), null);
