import type { Failure } from "../../../shared/failures.ts";
import { deadlineAfter } from "./timeout.ts";

/**
 * An `Absence` records that MAAS, its rack controllers or the secret store is unavailable. The record of an absence lasts from a stage's first run
 * without an answer of the service until the first run with an answer. When an unavailable service answers, the engine extends the stage's deadline
 * by the time of the absence. The engine does not extend the deadline of a compensation. If a service is unavailable at the deadline of a
 * compensation, a person must act.
 */
export interface Absence {
  readonly code: string;
  /** The time since which the service is unavailable, in ISO 8601. */
  readonly since: string;
  /** The number of consecutive runs of the stage in which the unavailable service did not answer. */
  readonly looks: number;
}

export const oneMoreLook = (absence: Absence | undefined, { code }: Pick<Failure, "code">, now: Date): Absence => ({
  code,
  since: absence?.since ?? now.toISOString(),
  looks: (absence?.looks ?? 0) + 1,
});

const secondsAway = (absence: Absence, now: Date): number =>
  Math.max(0, (now.getTime() - Date.parse(absence.since)) / 1000);

export const deadlineIfBack = (deadline: Date, absence: Absence | undefined, now: Date): Date =>
  absence === undefined ? deadline : deadlineAfter(deadline, secondsAway(absence, now));

const whatOf = ({ code }: Failure): string => {
  if (code === "bmc_unreachable") return "MAAS's rack controllers";
  return code.startsWith("secret_store_") ? "the secret store" : "MAAS";
};

const inWords = (at: Date): string => `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;

export const absenceReason = (failure: Failure, absence: Absence, nextTry: Date): string =>
  `${whatOf(failure)} to answer again (${failure.code}): unavailable since ${inWords(new Date(absence.since))}, next try at ${inWords(nextTry)}`;

/** The failure of a stage that needed a service which stayed unavailable until the stage's deadline. */
export function outlasted(failure: Failure, absence: Absence, now: Date): Failure {
  const seconds = Math.round(secondsAway(absence, now));
  const message = `${whatOf(failure)} did not answer from ${inWords(new Date(absence.since))} until the stage's deadline (${seconds} s): ${failure.message}`;
  const evidence = { ...failure.evidence, away_since: absence.since, away_seconds: seconds };
  return { ...failure, message, evidence } as Failure;
}
