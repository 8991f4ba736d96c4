/** A wait never sleeps past its stage's deadline, so a timeout fires when it is due and not a poll later. */
const PAST_DEADLINE_SECONDS = 0.01;
/** How soon a stage runs again after it began to wait on a key: a change between its observation and its commit woke nobody. */
const FIRST_LOOK_SECONDS = 1;

export const isPast = (deadline: Date, now: Date): boolean => now.getTime() >= deadline.getTime();

export const deadlineAfter = (enteredAt: Date, seconds: number): Date => new Date(enteredAt.getTime() + seconds * 1000);

/** When a waiting row is due again: after its own wait, or earlier because of the deadline or the first check. */
export function wakeAfterWait(
  wait: { readonly seconds: number; readonly on?: string | undefined },
  row: { readonly waitOn: string | null; readonly now: Date; readonly deadline: Date },
): number {
  const untilDeadline = (row.deadline.getTime() - row.now.getTime()) / 1000 + PAST_DEADLINE_SECONDS;
  const startsToListen = wait.on !== undefined && wait.on !== row.waitOn;
  const seconds = startsToListen ? Math.min(wait.seconds, FIRST_LOOK_SECONDS) : wait.seconds;
  return Math.max(0, Math.min(seconds, untilDeadline));
}
