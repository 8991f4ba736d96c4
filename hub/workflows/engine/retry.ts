import { type Failure, ruleOf } from "../../../shared/failures.ts";
import type { RetryPolicy, StageOverrides } from "./stage.ts";

/** What the engine does with a failure: try the stage again after a while, or give up. */
export type RetryDecision = { readonly retry: true; readonly inSeconds: number } | { readonly retry: false };

/**
 * Exponential backoff with equal jitter: at least half of the step, so that a fault of the whole site is not answered by every workflow at
 * the same moment and none comes back at once. An upstream's own Retry-After is a lower bound. `random` is in [0, 1).
 */
export function backoffSeconds(
  policy: RetryPolicy,
  attempt: number,
  random: number,
  retryAfterSeconds: number | null,
): number {
  const step = Math.min(policy.maxSeconds, policy.baseSeconds * 2 ** Math.min(30, Math.max(0, attempt - 1)));
  return Math.max(step / 2 + (step / 2) * random, retryAfterSeconds ?? 0);
}

/** `attempt` is the one that has just failed, counted from 1. A stage may tighten its class's rule, never loosen `never`. */
export function decideRetry(
  stage: { readonly retry: RetryPolicy; readonly overrides?: StageOverrides | undefined },
  failed: Failure,
  attempt: number,
  random: number,
  retryAfterSeconds: number | null,
): RetryDecision {
  const override = stage.overrides?.[failed.class];
  if (ruleOf(failed).retry === "never" || override?.retry === "never") return { retry: false };
  if (attempt >= (override?.maxAttempts ?? stage.retry.maxAttempts)) return { retry: false };
  return { retry: true, inSeconds: backoffSeconds(stage.retry, attempt, random, retryAfterSeconds) };
}

/** Whether a final failure of this stage undoes what the workflow did (decision W2). */
export function compensates(stage: { readonly overrides?: StageOverrides | undefined }, failed: Failure): boolean {
  return stage.overrides?.[failed.class]?.compensate ?? ruleOf(failed).compensate;
}
