import type { Entry } from "./repair-questions.ts";

/** One attempt to repair the machine, from the claim of the repair to the end of the attempt. */
export interface Attempt {
  readonly number: number;
  readonly claimedAt: string;
  readonly by: string;
  /** True if the claim of the repair gave the repairer an account on the host. */
  readonly hasAccess: boolean;
  /** How the repair attempt ended; null while it is under way. */
  readonly end: { readonly at: string; readonly as: Entry["entry"]; readonly by: string; readonly said: string } | null;
}

const ENDS: ReadonlySet<Entry["entry"]> = new Set(["completed", "failed", "lapsed", "handed_over", "escalated"]);
const DAY_MS = 86_400_000;
/** Only the repair attempts of the last `WINDOW_DAYS` days count towards the machine's limit of attempts. */
export const WINDOW_DAYS = 30;

/**
 * Returns the repair attempts that the timeline of a repair contains, the oldest first. A report about a repair that no repair team has claimed
 * belongs to no repair attempt.
 */
export function attemptsOf(timeline: readonly Entry[]): readonly Attempt[] {
  const attempts: Attempt[] = [];
  for (const { entry, attempt: number, at, actor: by, message: said } of timeline) {
    if (entry === "claimed") attempts.push({ number, claimedAt: at, by, hasAccess: false, end: null });
    const last = attempts.at(-1);
    if (last === undefined || last.number !== number || last.end !== null) continue;
    if (entry === "access_given") attempts[attempts.length - 1] = { ...last, hasAccess: true };
    if (ENDS.has(entry)) attempts[attempts.length - 1] = { ...last, end: { at, as: entry, by, said } };
  }
  return attempts;
}

/** The number of repair attempts that now count towards the machine's limit of attempts. */
export const recentOf = (attempts: readonly Attempt[], now: number): number =>
  attempts.filter(({ claimedAt }) => Date.parse(claimedAt) > now - WINDOW_DAYS * DAY_MS).length;
