import type { Entry } from "./repair-questions.ts";

/** One attempt at the machine, from its claim to its end. */
export interface Attempt {
  readonly number: number;
  readonly claimedAt: string;
  readonly by: string;
  /** True if the claim gave an account on the host. */
  readonly hasAccess: boolean;
  /** How the attempt ended; null while it is under way. */
  readonly end: { readonly at: string; readonly as: Entry["entry"]; readonly by: string; readonly said: string } | null;
}

const ENDS: ReadonlySet<Entry["entry"]> = new Set(["completed", "failed", "lapsed", "handed_over", "escalated"]);
const DAY_MS = 86_400_000;
/** The attempts of this time count towards the limit of a machine. */
export const WINDOW_DAYS = 30;

/** Returns the attempts that a timeline tells of, the oldest first. A report without a claim belongs to no attempt. */
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

/** The number of attempts that count towards the limit of the machine now. */
export const recentOf = (attempts: readonly Attempt[], now: number): number =>
  attempts.filter(({ claimedAt }) => Date.parse(claimedAt) > now - WINDOW_DAYS * DAY_MS).length;
