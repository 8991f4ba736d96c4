import { describe, expect, it } from "vitest";
import { CleaningOutcome, type CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import { gpuResetVerdict } from "./gpu-reset-verdict.ts";

const step = (name: string, target: string, outcome: CleaningStep["outcome"] = "ok"): CleaningStep => ({
  step: name,
  target,
  outcome,
  message: "why",
  evidence: {},
});
const HOST = [step("gpu_services_stop", "host"), step("gpu_holders", "host"), step("gpu_services_start", "host")];
const gpu = (pci: string): CleaningStep[] => [step("gpu_reset", pci), step("gpu_verify", pci)];
const CLEAN = [step("gpu_switches", "host"), ...HOST, ...gpu("a"), ...gpu("b")];
const TWO = { gpus: 2, cleanerShader: false };
const isClean = (steps: readonly CleaningStep[], required = TWO): boolean => gpuResetVerdict(steps, required).isClean;

describe("the verdict about GPUs", () => {
  it("is clean if every step succeeded for as many GPUs as the node has", () => {
    expect(gpuResetVerdict(CLEAN, TWO)).toEqual({ isClean: true, reasons: [] });
    expect(isClean(CLEAN, { ...TWO, gpus: 1 })).toBe(true);
  });

  it("is not clean if any one step is missing, except the switches, which AMD does not have", () => {
    for (const left of CLEAN) {
      const verdict = gpuResetVerdict(
        CLEAN.filter((one) => one !== left),
        TWO,
      );
      expect([left.step, verdict.isClean, verdict.reasons.length]).toEqual(
        left.step === "gpu_switches" ? [left.step, true, 0] : [left.step, false, 1],
      );
    }
  });

  it("is not clean if any one step has any other outcome than success", () => {
    for (const outcome of CleaningOutcome.options.filter((one) => one !== "ok"))
      for (const bad of CLEAN) {
        const verdict = gpuResetVerdict(
          CLEAN.map((one) => (one === bad ? { ...one, outcome } : one)),
          TWO,
        );
        expect([bad.step, outcome, verdict.isClean]).toEqual([bad.step, outcome, false]);
        expect(verdict.reasons.join()).toContain(`${bad.step} of ${bad.target} is ${outcome}: why`);
      }
  });

  it("is not clean without steps, with fewer GPUs than the node has, or with the same GPU twice", () => {
    expect(isClean([])).toBe(false);
    expect(gpuResetVerdict(CLEAN, { ...TWO, gpus: 3 }).reasons).toEqual(["2 of 3 GPUs were reset and found healthy."]);
    expect(isClean([...HOST, ...gpu("a"), ...gpu("a")])).toBe(false);
    expect(
      isClean([
        ...HOST,
        step("gpu_reset", "a"),
        step("gpu_reset", "b"),
        step("gpu_verify", "c"),
        step("gpu_verify", "d"),
      ]),
    ).toBe(false);
  });

  it("needs the cleaner shader only if it is required", () => {
    const shader = (outcome: CleaningStep["outcome"]): CleaningStep[] => [
      ...CLEAN,
      step("gpu_cleaner_shader", "a"),
      step("gpu_cleaner_shader", "b", outcome),
    ];
    const required = { ...TWO, cleanerShader: true };
    expect([isClean(shader("ok")), isClean(shader("unsupported")), isClean(shader("failed"))]).toEqual([
      true,
      true,
      false,
    ]);
    expect([
      isClean(shader("ok"), required),
      isClean(shader("unsupported"), required),
      isClean(CLEAN, required),
    ]).toEqual([true, false, false]);
  });
});
