import { describe, expect, it } from "vitest";
import {
  CleaningEvidence,
  CleaningOutcome,
  CleaningStep,
  CleaningSteps,
  cleaningStepsNamed,
  MOST_CLEANING_STEPS,
  MOST_EVIDENCE_KEYS,
} from "./cleaning-step.ts";

const step = { step: "home", target: "/home/ada", outcome: "ok", message: "", evidence: { removed: 3 } } as const;
const evidenceOf = (keys: number) =>
  Object.fromEntries(Array.from({ length: keys }, (_none, index) => [`k${index}`, index]));

describe("a cleaning step", () => {
  it.each(CleaningOutcome.options)("may have the outcome %s", (outcome) => {
    expect(CleaningStep.parse({ ...step, outcome })).toEqual({ ...step, outcome });
  });

  it.each([
    ["an unknown outcome", { outcome: "clean" }],
    ["no target", { target: "" }],
    ["a long name", { step: "s".repeat(65) }],
    ["a long target", { target: "t".repeat(257) }],
    ["a long message", { message: "m".repeat(513) }],
    ["an unknown field", { secret: "x" }],
    ["evidence with an object", { evidence: { a: {} } }],
    ["evidence with a long text", { evidence: { a: "a".repeat(257) } }],
    ["evidence with a number that is not finite", { evidence: { a: Number.NaN } }],
  ])("must not have %s", (_what, change) => {
    expect(CleaningStep.safeParse({ ...step, ...change }).success).toBe(false);
  });

  it("has bounded evidence", () => {
    expect(CleaningEvidence.safeParse(evidenceOf(MOST_EVIDENCE_KEYS)).success).toBe(true);
    expect(CleaningEvidence.safeParse(evidenceOf(MOST_EVIDENCE_KEYS + 1)).success).toBe(false);
    expect(CleaningEvidence.parse({ a: "x", b: 1, c: true, d: null })).toEqual({ a: "x", b: 1, c: true, d: null });
  });

  it("is in a bounded list", () => {
    expect(CleaningSteps.safeParse(Array(MOST_CLEANING_STEPS).fill(step)).success).toBe(true);
    expect(CleaningSteps.safeParse(Array(MOST_CLEANING_STEPS + 1).fill(step)).success).toBe(false);
  });

  it("has only the names of its task's list", () => {
    const own = cleaningStepsNamed(["home", "account"]);
    expect(own.safeParse([step]).success).toBe(true);
    expect(own.safeParse([{ ...step, step: "disk" }]).success).toBe(false);
  });
});
