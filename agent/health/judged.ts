import { type ConditionTypeOf, NOT_OBSERVED } from "../../shared/condition-types.ts";
import type { ConditionStatus } from "../../shared/readiness.ts";

/** The types of the conditions that the agent's looks at its host report. */
export type HealthType = Extract<ConditionTypeOf<"agent">, `hardware.${string}` | `health.${string}`>;

/** What one look at the host says about one condition. */
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

/** A tool, a file of the kernel or a part of the hardware is missing. What cannot be observed is information, and never counts as healthy. */
export const notObserved = (message: string): Judged => ({
  status: "Unknown",
  reason: NOT_OBSERVED,
  message: message.slice(0, MOST_MESSAGE),
});

/** A tool that is there did not answer as it should, so nobody knows whether the hardware is healthy. */
export const unreadable = (message: string): Judged => ({
  status: "Unknown",
  reason: "Unreadable",
  message: message.slice(0, MOST_MESSAGE),
});

/** Returns the first of several findings in one text, and the number of the others. */
export function named(all: readonly string[]): string {
  const more = all.length > MOST_NAMED ? `; and ${all.length - MOST_NAMED} more` : "";
  return `${all.slice(0, MOST_NAMED).join("; ").slice(0, MOST_MESSAGE)}${more}`;
}

const badness = ({ status, reason }: Judged): number =>
  status === "False" ? 3 : status === "True" ? 0 : reason === NOT_OBSERVED ? 1 : 2;

/** Several looks may each say a part of one condition, for example the GPU driver and the kernel's log. The worst of them is the condition. */
export const worstOf = (parts: readonly Judged[]): Judged | null =>
  parts.reduce<Judged | null>((worst, one) => (worst === null || badness(one) > badness(worst) ? one : worst), null);
