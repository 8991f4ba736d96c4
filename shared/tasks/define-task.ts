import type { z } from "zod";

/** What the hub does with an error that a task reports. */
export type ErrorHandling = "retry" | "fail";

/**
 * A node runs one task at a time in each lane. A short task in its own lane never waits behind a long one. `work` changes the host.
 * `look` only reads and takes no noticeable time.
 */
export type TaskLane = "work" | "look";

export interface TaskSpec<
  T extends string,
  I extends z.ZodObject,
  R extends z.ZodType,
  P extends z.ZodType,
  E extends string,
> {
  readonly type: T;
  readonly lane: TaskLane;
  /** How long a delivery may run without progress. After the lease the hub may offer the task again, with a higher epoch. */
  readonly leaseSeconds: number;
  /**
   * A destructive task starts at most once for each (task, epoch). A destructive task with an unknown end is reported as `interrupted` and never
   * run again.
   */
  readonly destructive: boolean;
  /** The agent acts only after the hub has accepted its result. A cancel before the acceptance has priority, even over a success. */
  readonly effectOnceAccepted?: boolean;
  /** An object, because the database stores it and later fields must have a place. A task without input takes `z.strictObject({})`. */
  readonly input: I;
  readonly result: R;
  readonly progress: P;
  readonly errors: Readonly<Record<E, ErrorHandling>>;
}

export const defineTask = <
  const T extends string,
  I extends z.ZodObject,
  R extends z.ZodType,
  P extends z.ZodType,
  const E extends string,
>(
  spec: TaskSpec<T, I, R, P, E>,
): TaskSpec<T, I, R, P, E> => spec;
