import type { z } from "zod";

/** What the hub does with an error that a task reports. */
export type ErrorHandling = "retry" | "fail";

/**
 * A node has one task at a time in each lane, in the hub's queue and at its agent, so that a quick and harmless task never waits behind a long one.
 * `work` changes the host; `look` only reads, and takes no noticeable time.
 */
export type TaskLane = "work" | "look";

export interface TaskSpec<
  T extends string,
  I extends z.ZodType,
  R extends z.ZodType,
  P extends z.ZodType,
  E extends string,
> {
  readonly type: T;
  readonly lane: TaskLane;
  /** How long one delivery may run without progress before the hub may offer it again, with a higher epoch. */
  readonly leaseSeconds: number;
  /** A destructive task is started at most once per (task, epoch); with an unknown end it is reported as `interrupted`, never run again. */
  readonly destructive: boolean;
  /** The agent acts only after the hub has accepted its result; a cancel before that wins, even over a success. */
  readonly effectOnceAccepted?: boolean;
  readonly input: I;
  readonly result: R;
  readonly progress: P;
  readonly errors: Readonly<Record<E, ErrorHandling>>;
}

export const defineTask = <
  const T extends string,
  I extends z.ZodType,
  R extends z.ZodType,
  P extends z.ZodType,
  const E extends string,
>(
  spec: TaskSpec<T, I, R, P, E>,
): TaskSpec<T, I, R, P, E> => spec;
