import type { Failure } from "../../../shared/failures.ts";
import { deadlineAfter } from "./timeout.ts";

/**
 * MAAS or the secret store is away: kept in the row from the first look that could not ask it to the first that could. It is waited for until the stage's own
 * deadline; the time that it was away is given back to the stage when it returns, for the stage could not use it. Undoing gets none
 * back: it has its own time, and then waits for a person.
 */
export interface Absence {
  /** What it was last told by. */
  readonly code: string;
  /** ISO 8601. */
  readonly since: string;
  /** How many looks in a row found it away. */
  readonly looks: number;
}

export const oneMoreLook = (absence: Absence | undefined, { code }: Pick<Failure, "code">, now: Date): Absence => ({
  code,
  since: absence?.since ?? now.toISOString(),
  looks: (absence?.looks ?? 0) + 1,
});

const secondsAway = (absence: Absence, now: Date): number =>
  Math.max(0, (now.getTime() - Date.parse(absence.since)) / 1000);

/** The stage's deadline if what was away answers now. */
export const deadlineIfBack = (deadline: Date, absence: Absence | undefined, now: Date): Date =>
  absence === undefined ? deadline : deadlineAfter(deadline, secondsAway(absence, now));

const whatOf = ({ code }: Failure): string => {
  if (code === "bmc_unreachable") return "MAAS's rack controllers";
  return code.startsWith("secret_store_") ? "the secret store" : "MAAS";
};

const inWords = (at: Date): string => `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** What an operator reads while it is away. */
export const absenceReason = (failure: Failure, absence: Absence, nextTry: Date): string =>
  `${whatOf(failure)} to answer again (${failure.code}): away since ${inWords(new Date(absence.since))}, next try at ${inWords(nextTry)}`;

/** It was away for as long as the stage had: that is what happened, and not what the stage waited for. */
export function outlasted(failure: Failure, absence: Absence, now: Date): Failure {
  const seconds = Math.round(secondsAway(absence, now));
  const message = `The stage's time is up, and ${whatOf(failure)} could not be asked since ${inWords(new Date(absence.since))} (${seconds} s): ${failure.message}`;
  const evidence = { ...failure.evidence, away_since: absence.since, away_seconds: seconds };
  return { ...failure, message, evidence } as Failure;
}
