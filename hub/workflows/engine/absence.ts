import type { Failure } from "../../../shared/failures.ts";
import { deadlineAfter } from "./timeout.ts";

/**
 * MAAS or the secret store is unavailable. The row keeps this from the first run that could not reach it until the first that could. The stage waits until its own
 * deadline. When the service is back, the stage gets the time of the absence back, because it could not use it. Compensation gets no time
 * back: it has its own deadline, and then waits for a person.
 */
export interface Absence {
  /** The code of the last error. */
  readonly code: string;
  /** ISO 8601. */
  readonly since: string;
  /** How many runs in a row could not reach it. */
  readonly looks: number;
}

export const oneMoreLook = (absence: Absence | undefined, { code }: Pick<Failure, "code">, now: Date): Absence => ({
  code,
  since: absence?.since ?? now.toISOString(),
  looks: (absence?.looks ?? 0) + 1,
});

const secondsAway = (absence: Absence, now: Date): number =>
  Math.max(0, (now.getTime() - Date.parse(absence.since)) / 1000);

/** The stage's deadline if the service answers now. */
export const deadlineIfBack = (deadline: Date, absence: Absence | undefined, now: Date): Date =>
  absence === undefined ? deadline : deadlineAfter(deadline, secondsAway(absence, now));

const whatOf = ({ code }: Failure): string => {
  if (code === "bmc_unreachable") return "MAAS's rack controllers";
  return code.startsWith("secret_store_") ? "the secret store" : "MAAS";
};

const inWords = (at: Date): string => `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** The wait reason for operators during an absence. */
export const absenceReason = (failure: Failure, absence: Absence, nextTry: Date): string =>
  `${whatOf(failure)} to answer again (${failure.code}): away since ${inWords(new Date(absence.since))}, next try at ${inWords(nextTry)}`;

/** The absence lasted until the deadline: the failure is the absence, and not what the stage waited for. */
export function outlasted(failure: Failure, absence: Absence, now: Date): Failure {
  const seconds = Math.round(secondsAway(absence, now));
  const message = `The stage's time is up, and ${whatOf(failure)} could not be asked since ${inWords(new Date(absence.since))} (${seconds} s): ${failure.message}`;
  const evidence = { ...failure.evidence, away_since: absence.since, away_seconds: seconds };
  return { ...failure, message, evidence } as Failure;
}
