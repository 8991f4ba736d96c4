import { z } from "zod";

/**
 * The outcomes with which a cleaning step (architecture 14.3) can end. In the result of a plan (a task with `plan: true`), the outcome of each
 * cleaning step is `planned`.
 */
export const CleaningOutcome = z.enum(["ok", "failed", "skipped", "unsupported", "planned"]);

export const MOST_EVIDENCE_KEYS = 16;
export const MOST_CLEANING_STEPS = 200;

const EvidenceValue = z.union([z.string().max(256), z.number(), z.boolean(), z.null()]);

/**
 * The evidence of a cleaning step contains what the step counted or read, by name. The sanitization record of a cleaning between two tenants contains
 * the evidence of its cleaning steps.
 */
export const CleaningEvidence = z
  .record(z.string().min(1).max(64), EvidenceValue)
  .refine((evidence) => Object.keys(evidence).length <= MOST_EVIDENCE_KEYS, `at most ${MOST_EVIDENCE_KEYS} entries`);

/** One step of a task that cleans a host: what the agent did or would do, to what, and with which outcome (architecture 14.3). */
export const CleaningStep = z.strictObject({
  step: z.string().min(1).max(64),
  /** The target of a cleaning step is for example an account's name, a path or a device. */
  target: z.string().min(1).max(256),
  outcome: CleaningOutcome,
  message: z.string().max(512),
  evidence: CleaningEvidence,
});
export type CleaningStep = z.output<typeof CleaningStep>;

export const CleaningSteps = z.array(CleaningStep).max(MOST_CLEANING_STEPS);

/** Returns the schema of a task's list of cleaning steps, in which each step has one of the given names. */
export const cleaningStepsNamed = <const N extends readonly [string, ...string[]]>(names: N) =>
  z.array(CleaningStep.extend({ step: z.enum(names) })).max(MOST_CLEANING_STEPS);
