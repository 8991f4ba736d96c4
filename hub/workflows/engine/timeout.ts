/** A waiting workflow becomes due at most `PAST_DEADLINE_SECONDS` after its stage's deadline, so that a timeout takes effect at once. */
const PAST_DEADLINE_SECONDS = 0.01;
/**
 * If a stage has begun to wait for a notification key, the engine repeats the stage once after `FIRST_LOOK_SECONDS`. The first repeat of a waiting
 * stage finds a change that happened between the stage's observation and the commit of its verdict.
 */
const FIRST_LOOK_SECONDS = 1;

export const isPast = (deadline: Date, now: Date): boolean => now.getTime() >= deadline.getTime();

export const deadlineAfter = (enteredAt: Date, seconds: number): Date => new Date(enteredAt.getTime() + seconds * 1000);

/** A stage's wait ends early at the stage's deadline, and also soon after its begin if the stage did not wait for this notification key before. */
export function wakeAfterWait(
  wait: { readonly seconds: number; readonly on?: string | undefined },
  row: { readonly waitOn: string | null; readonly now: Date; readonly deadline: Date },
): number {
  const untilDeadline = (row.deadline.getTime() - row.now.getTime()) / 1000 + PAST_DEADLINE_SECONDS;
  const startsToListen = wait.on !== undefined && wait.on !== row.waitOn;
  const seconds = startsToListen ? Math.min(wait.seconds, FIRST_LOOK_SECONDS) : wait.seconds;
  return Math.max(0, Math.min(seconds, untilDeadline));
}
