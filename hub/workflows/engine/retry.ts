import { type Failure, ruleOf } from "../../../shared/failures.ts";
import type { RetryPolicy, StageOverrides } from "./stage.ts";

export type RetryDecision =
  | { readonly retry: "attempt"; readonly inSeconds: number }
  | { readonly retry: "when_back"; readonly inSeconds: number }
  | { readonly retry: "no" };

/** While a service is unavailable, all workflows of a site call it, so the pauses between a workflow's calls grow beyond two seconds. */
const AWAY_RETRY: Omit<RetryPolicy, "maxAttempts"> = { baseSeconds: 2, maxSeconds: 60 };

/**
 * Exponential backoff with equal jitter makes each pause at least half of the largest pause for the stage's attempt. The jitter keeps the workflows
 * of a site from retrying at the same moment after a fault of the whole site. The pause before a retry is never shorter than the time in the
 * `Retry-After` of MAAS's answer. The argument `random` is a random number in [0, 1) for the jitter.
 */
export function backoffSeconds(
  policy: Omit<RetryPolicy, "maxAttempts">,
  attempt: number,
  random: number,
  retryAfterSeconds: number | null,
): number {
  const step = Math.min(policy.maxSeconds, policy.baseSeconds * 2 ** Math.min(30, Math.max(0, attempt - 1)));
  return Math.max(step / 2 + (step / 2) * random, retryAfterSeconds ?? 0);
}

/** The field `attempt` counts refused requests, and `looks` counts consecutive runs in which a service did not answer. */
export interface Tries {
  readonly attempt: number;
  readonly looks: number;
}

/** A stage may restrict the retries of a failure class, but cannot permit retries that the failure class forbids. */
export function decideRetry(
  stage: { readonly retry: RetryPolicy; readonly overrides?: StageOverrides | undefined },
  failed: Failure,
  tries: Tries,
  random: number,
  retryAfterSeconds: number | null,
): RetryDecision {
  const override = stage.overrides?.[failed.class];
  const rule = ruleOf(failed).retry;
  if (rule === "never" || override?.retry === "never") return { retry: "no" };
  if (rule === "until_deadline") {
    return { retry: "when_back", inSeconds: backoffSeconds(AWAY_RETRY, tries.looks, random, retryAfterSeconds) };
  }
  if (tries.attempt >= (override?.maxAttempts ?? stage.retry.maxAttempts)) return { retry: "no" };
  return { retry: "attempt", inSeconds: backoffSeconds(stage.retry, tries.attempt, random, retryAfterSeconds) };
}

/** True if a final failure of the stage starts the workflow's compensation (decision W2). */
export function compensates(stage: { readonly overrides?: StageOverrides | undefined }, failed: Failure): boolean {
  return stage.overrides?.[failed.class]?.compensate ?? ruleOf(failed).compensate;
}
