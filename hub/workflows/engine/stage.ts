import type { Evidence, Failure, FailureClass } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import type { Tx } from "../../db/tx.ts";

/**
 * A stage is a small function of the workflow's record and an observation, and returns a verdict. A stage never sleeps, loops or retries, because the
 * engine runs it again whenever its row is due. The engine merges `patch` into the workflow's state. `commit` runs in the transaction that stores the
 * verdict, so a stage's writes and its verdict cannot disagree (architecture 1). A stage's `commit` must make no network call.
 */
interface Verdict<State> {
  readonly patch?: Partial<State>;
  readonly commit?: (tx: Tx) => Promise<void>;
  readonly details?: Evidence;
}
/** The verdict that ends a stage. The `leaves` of the last stage are shown on the completed workflow, as things for an operator to decide. */
interface Ended<State> extends Verdict<State> {
  readonly message: string;
  readonly leaves?: Leftover;
}
export type Done<State> = Ended<State> & { readonly kind: "done" };
export type Skipped<State> = Ended<State> & { readonly kind: "skipped" };
/** After the verdict `wait`, the engine runs the stage again after `seconds`, or earlier after a notification of the key `on`. */
export type Wait<State> = Verdict<State> & {
  readonly kind: "wait";
  readonly reason: string;
  readonly seconds: number;
  readonly on?: string;
};
/**
 * The verdict `back` returns the workflow to an earlier stage. A counter in the workflow's state limits how often a stage returns the workflow to an
 * earlier stage.
 */
export type Back<State> = Verdict<State> & { readonly kind: "back"; readonly to: string; readonly message: string };
/** The verdict `enter_again` enters the same stage again: the engine commits `patch`, and the stage gets new attempts and a new deadline. */
export type EnterAgain<State> = Verdict<State> & { readonly kind: "enter_again"; readonly message: string };
export type Failed<State> = Verdict<State> & { readonly kind: "failed"; readonly failure: Failure };
export type Outcome<State> =
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Back<State>
  | EnterAgain<State>
  | Failed<State>;

/** The result of a stage's `observe`. After `not_started` the engine calls the stage's `run`; every other result is the stage's verdict. */
export type Observation<State> =
  | { readonly kind: "not_started" }
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Failed<State>;

/** The input of every stage, apart from the services that the workflow adds. All times in a `StageRun` come from the database's clock. */
export interface StageRun<Input, State> {
  readonly workflowId: WorkflowId;
  /**
   * The fence number of the hub's claim on the row. Each transaction that a stage opens checks the fence number first, so that a run that has lost
   * its lease writes nothing.
   */
  readonly fence: number;
  readonly stage: string;
  /** The number of the stage's attempt: 1 for the first attempt, and 1 more for each retry. */
  readonly attempt: number;
  /** True if an earlier run of the stage, since the workflow entered the stage, may already have acted outside the hub. */
  readonly reentered: boolean;
  readonly enteredAt: Date;
  readonly deadline: Date;
  readonly now: Date;
  readonly input: Input;
  readonly state: Readonly<Partial<State>>;
  /** The signal that is aborted when the run loses its lease or the hub stops. The engine does not store the result of an aborted run. */
  readonly signal: AbortSignal;
}

export interface RetryPolicy {
  /** The number of attempts that a stage gets, including the first. */
  readonly maxAttempts: number;
  readonly baseSeconds: number;
  readonly maxSeconds: number;
}

/**
 * The cause of a compensation. For the cause `restart`, the compensation undoes even a successful effect, because the workflow begins again from its
 * first stage.
 */
export type CompensationCause = "failure" | "cancel" | "restart";
/**
 * The result of a compensation. A compensation must be safe even if the stage's `run` never began; in this case the compensation returns `done` or
 * `skipped`.
 */
export type Compensation<State> = Undone<State> | Wait<State> | Failed<State> | TooLate<State>;
/**
 * `leaves` lists the effects outside the hub that the compensation did not undo. Operators see the list of remaining effects on a cancelled workflow.
 */
export type Undone<State> = Done<State> | Skipped<State>;
/**
 * The verdict `too_late`: the stage's effect can no longer be undone, which is not a fault. The `failure` of the verdict `too_late` says how an
 * operator continues the workflow.
 */
export type TooLate<State> = Verdict<State> & { readonly kind: "too_late"; readonly failure: Failure };

export type StageOverrides = Partial<
  Record<
    FailureClass,
    {
      readonly retry?: "never" | "bounded";
      readonly compensate?: boolean;
      readonly maxAttempts?: number;
      /** A stage can change the final status after a failure only to `failed_manual_intervention`, which asks for a person. */
      readonly endsAs?: "failed_manual_intervention";
    }
  >
>;

/**
 * `Name` is the stage's own name. By `Name`, the compiler checks that a workflow's list of stages fits its list of stage names. The functions of a
 * stage are properties and not methods. If the functions of a stage were methods, the compiler would accept a stage that reads a field that the
 * workflow's context lacks.
 */
export interface Stage<Context extends StageRun<unknown, State>, State, Name extends string = string> {
  readonly name: Name;
  /** One line for operators that says what the stage does. */
  readonly title: string;
  /**
   * With `from_top`, the engine may run the stage again without an observation. With `observe_first`, the engine calls `observe` before every run, so
   * the compiler requires an `observe` (lifecycle 4.10).
   */
  readonly reentry:
    | { readonly rule: "from_top" }
    | { readonly rule: "observe_first"; readonly observe: (context: Context) => Promise<Observation<State>> };
  readonly timeout: {
    readonly seconds: (context: Context) => number;
    readonly failure: (context: Context) => Failure | Promise<Failure>;
  };
  readonly retry: RetryPolicy;
  /** Rules of failure classes that this stage changes, e.g. no compensation after a deploy. */
  readonly overrides?: StageOverrides;
  readonly run: (context: Context) => Promise<Outcome<State>>;
  readonly compensate?: (context: Context, cause: CompensationCause) => Promise<Compensation<State>>;
}

/**
 * A list of stages that fits a list of names: one stage for each name, in the same order. The compiler refuses a list of stages with a missing, extra
 * or repeated stage or a wrong order.
 */
export type StagesOf<Names extends readonly string[], Context extends StageRun<unknown, State>, State> = {
  readonly [I in keyof Names]: Stage<Context, State, Names[I]>;
};
