import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { failure } from "../../../shared/failures.ts";
import { backoffSeconds, compensates, decideRetry } from "./retry.ts";

const policy = { maxAttempts: 4, baseSeconds: 2, maxSeconds: 60 };

describe("backoffSeconds", () => {
  it("doubles with each attempt up to the maximum", () => {
    expect([1, 2, 3, 10].map((attempt) => backoffSeconds(policy, attempt, 0.999999, null)).map(Math.round)).toEqual([
      2, 4, 8, 60,
    ]);
  });

  it("property: lies between half a step and a step, or is the upstream's Retry-After", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 1000 })),
        fc.double({ min: 0, max: 0.9999999, noNaN: true }),
        fc.option(fc.integer({ min: 0, max: 600 })),
        (attempt, random, retryAfter) => {
          const seconds = backoffSeconds(policy, attempt, random, retryAfter);
          // The array has the largest pause in seconds after each of a stage's attempts 1 to 5. From the stage's sixth attempt on, the largest pause
          // is 60 seconds.
          const step = [2, 4, 8, 16, 32][attempt - 1] ?? 60;
          expect(seconds).toBeGreaterThanOrEqual(Math.max(step / 2, retryAfter ?? 0));
          expect(seconds).toBeLessThanOrEqual(Math.max(step, retryAfter ?? 0));
        },
      ),
    );
  });
});

describe("decideRetry", () => {
  const stage = { retry: policy };
  const mismatch = failure("hardware_mismatch", "boss_disk_missing", "no disk");
  const transient = failure("upstream_transient", "maas_bad_answer", "odd");
  const away = failure("upstream_transient", "maas_unreachable", "away");
  const tries = (attempt: number) => ({ attempt, looks: 1 });

  it("never retries a class whose rule is `never`, whatever the stage allows", () => {
    const loose = { ...stage, overrides: { hardware_mismatch: { maxAttempts: 9 } } } as const;
    expect(decideRetry(loose, mismatch, tries(1), 0, null)).toEqual({ retry: "no" });
  });

  it("lets a stage restrict the retries of a class", () => {
    const never = { ...stage, overrides: { upstream_transient: { retry: "never" } } } as const;
    for (const one of [transient, away]) expect(decideRetry(never, one, tries(1), 0, null)).toEqual({ retry: "no" });
    const fewer = { ...stage, overrides: { upstream_transient: { maxAttempts: 1 } } } as const;
    expect(decideRetry(fewer, transient, tries(1), 0, null)).toEqual({ retry: "no" });
  });

  it("retries a refused request until the attempts are used up", () => {
    expect(decideRetry(stage, transient, tries(3), 0, null)).toEqual({ retry: "attempt", inSeconds: 4 });
    expect(decideRetry(stage, transient, tries(4), 0, null)).toEqual({ retry: "no" });
  });

  it("property: waits for an unavailable service after any number of runs, at most a minute unless its Retry-After is longer", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 0.9999999, noNaN: true }),
        (attempt, looks, random) => {
          const decision = decideRetry(stage, away, { attempt, looks }, random, null);
          if (decision.retry !== "when_back") throw new Error(decision.retry);
          expect(decision.inSeconds).toBeGreaterThanOrEqual(Math.min(30, 2 ** (looks - 1)));
          expect(decision.inSeconds).toBeLessThanOrEqual(60);
        },
      ),
    );
    expect(decideRetry(stage, away, tries(1), 0, 77)).toEqual({ retry: "when_back", inSeconds: 77 });
  });
});

describe("compensates", () => {
  const deploy = failure("deploy_cloud_init_failure", "deploy_failed", "failed");
  it("follows the rule of the class unless the stage overrides it", () => {
    expect(compensates({}, deploy)).toBe(true);
    expect(compensates({ overrides: { deploy_cloud_init_failure: { compensate: false } } }, deploy)).toBe(false);
    expect(compensates({}, failure("upstream_transient", "maas_timeout", "slow"))).toBe(false);
  });
});
