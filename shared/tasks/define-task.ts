import type { z } from "zod";

export type ErrorHandling = "retry" | "fail";

/** Whether a task may change the host. A task that changes only the agent's own notes in its state folder changes nothing of the host. */
export type TaskChanges = "host" | "nothing";

/**
 * A task that may change the host has an input field `plan`, by which an order asks only for a plan (what the task would do). An order in which the
 * optional field `plan` is absent asks the agent to do the work and not only to plan it.
 */
type WithPlan = { readonly shape: { readonly plan: z.ZodBoolean | z.ZodExactOptional<z.ZodBoolean> } };

export interface TaskSpec<
  T extends string,
  I extends z.ZodObject,
  R extends z.ZodType,
  P extends z.ZodType,
  E extends string,
  C extends TaskChanges = TaskChanges,
> {
  readonly type: T;
  /** The definition of a task with `changes: "host"` does not compile if the task's input has no field `plan`. */
  readonly changes: C;
  /**
   * A task's lease says how long one delivery of the task may run without a report of its progress. After the lease of a delivery has expired, the
   * hub may deliver the task again, with a higher delivery number (epoch).
   */
  readonly leaseSeconds: number;
  /**
   * A destructive task starts at most once for each delivery (epoch) of the task. If the end of a destructive task is unknown, the agent reports the
   * task as `interrupted` and never runs it again.
   */
  readonly destructive: boolean;
  /**
   * A task's input is an object, so that a later release can add a field to inputs that the database stores. A task without input has the input
   * schema `z.strictObject({})`.
   */
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
  const C extends TaskChanges,
>(
  spec: TaskSpec<T, I, R, P, E, C> & (C extends "host" ? { readonly input: WithPlan } : unknown),
): TaskSpec<T, I, R, P, E, C> => spec;
