import { type CleaningStep, MOST_EVIDENCE_KEYS } from "../../shared/tasks/cleaning-step.ts";

const MAX_TARGET = 256;
const MAX_MESSAGE = 512;
const MAX_EVIDENCE_TEXT = 256;

/**
 * Makes a cleaning step that fits the schema `CleaningStep`. A step's texts may contain names that a tenant chose, so `cleaningStep` replaces control
 * characters by question marks and cuts long texts.
 */
export function cleaningStep<S extends string>(
  step: S,
  target: string,
  outcome: CleaningStep["outcome"],
  message: string,
  evidence: CleaningStep["evidence"] = {},
): CleaningStep & { step: S } {
  const bounded = Object.entries(evidence)
    .slice(0, MOST_EVIDENCE_KEYS)
    .map(([key, value]) => [key, typeof value === "string" ? plain(value, MAX_EVIDENCE_TEXT) : value] as const);
  return {
    step,
    target: plain(target, MAX_TARGET) || "?",
    outcome,
    message: plain(message, MAX_MESSAGE),
    evidence: Object.fromEntries(bounded),
  };
}

/** Returns a text without control characters and without halves of surrogate pairs, cut to `length` characters. */
export function plain(text: string, length: number): string {
  const clean = text.toWellFormed().replace(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/gu, "?");
  return clean.length <= length ? clean : `${clean.slice(0, length - 1).toWellFormed()}…`.slice(0, length);
}

/** Joins at most `most` names to a text, and adds how many names the text leaves out. */
export const namesIn = (names: readonly string[], most = 5): string =>
  names.length <= most ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
