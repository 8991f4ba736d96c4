import { type CleaningStep, MOST_EVIDENCE_KEYS } from "../../shared/tasks/cleaning-step.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { shownName } from "../system/byte-names.ts";

const MAX_TARGET = 256;
const MAX_MESSAGE = 512;
const MAX_EVIDENCE_TEXT = 256;

/**
 * The texts of a cleaning step may contain names that a tenant chose, so `cleaningStep` replaces control characters and cuts long texts. A cleaning
 * step's texts may also repeat what a tool of the host printed, so `cleaningStep` removes credentials from the texts before it cuts them.
 * `cleaningStep` leaves the target unchanged, because the target is a name, for example a serial number, that the hub compares with other names.
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
    .map(([key, value]) => [key, typeof value === "string" ? told(value, MAX_EVIDENCE_TEXT) : value] as const);
  return {
    step,
    target: plain(target, MAX_TARGET) || "?",
    outcome,
    message: told(message, MAX_MESSAGE),
    evidence: Object.fromEntries(bounded),
  };
}

const told = (text: string, length: number): string => plain(withoutCredentials(text), length);

/** Cuts a text to `length` characters, without control characters and halves of surrogate pairs. */
export function plain(text: string, length: number): string {
  const clean = shownName(text)
    .toWellFormed()
    .replace(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/gu, "?");
  return clean.length <= length ? clean : `${clean.slice(0, length - 1).toWellFormed()}…`.slice(0, length);
}

export const namesIn = (names: readonly string[], most = 5): string =>
  names.length <= most ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
