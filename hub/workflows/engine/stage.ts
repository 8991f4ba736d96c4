import type { Evidence, Failure, FailureClass } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import type { Tx } from "../../db/tx.ts";

/**
 * A stage never sleeps, loops or retries, because the engine runs it again whenever its workflow is due. The engine merges a verdict's `patch` into
 * the workflow's state. The engine runs `commit` in the transaction that stores the verdict, so a stage's writes and its verdict cannot disagree
 * (architecture 1). The function `commit` of a verdict must make no network call.
 */
interface Verdict<State> {
  readonly patch?: Partial<State>;
  readonly commit?: (tx: Tx) => Promise<void>;
  readonly details?: Evidence;
}
/** The API shows what the last stage left undecided (`leaves`) on the completed workflow, for an operator to decide. */
interface Ended<State> extends Verdict<State> {
  readonly message: string;
  readonly leaves?: Leftover;
}
export type Done<State> = Ended<State> & { readonly kind: "done" };
export type Skipped<State> = Ended<State> & { readonly kind: "skipped" };
/** After the verdict `wait`, the engine repeats the stage after `seconds`, or earlier after a notification for the key `on`. */
export type Wait<State> = Verdict<State> & {
  readonly kind: "wait";
  readonly reason: string;
  readonly seconds: number;
  readonly on?: string;
};
/**
 * The verdict `back` returns the workflow to an earlier stage. A stage counts in the workflow's state how often it has returned `back`, and stops at
 * a limit.
 */
export type Back<State> = Verdict<State> & { readonly kind: "back"; readonly to: string; readonly message: string };
/** By the verdict `enter_again`, the engine commits `patch` and enters the present stage with new attempts and a new deadline. */
export type EnterAgain<State> = Verdict<State> & { readonly kind: "enter_again"; readonly message: string };
export type Failed<State> = Verdict<State> & { readonly kind: "failed"; readonly failure: Failure };
export type Outcome<State> =
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Back<State>
  | EnterAgain<State>
  | Failed<State>;

/** If a stage's observation is `not_started`, the engine calls the stage's `run`; every other observation is the stage's verdict. */
export type Observation<State> =
  | { readonly kind: "not_started" }
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Failed<State>;

/** All times in a `StageRun` come from the database's clock. */
export interface StageRun<Input, State> {
  readonly workflowId: WorkflowId;
  /** Each transaction of a stage first checks the fence, the number of the lease, so that a run that has lost its lease writes nothing. */
  readonly fence: number;
  readonly stage: string;
  readonly attempt: number;
  /** True if an earlier run may already have acted outside the hub since the workflow entered the stage. */
  readonly reentered: boolean;
  readonly enteredAt: Date;
  readonly deadline: Date;
  readonly now: Date;
  readonly input: Input;
  readonly state: Readonly<Partial<State>>;
  /**
   * The signal that the engine aborts when the run of the stage loses its lease on the workflow or the hub stops. The engine does not store the
   * result of an aborted run.
   */
  readonly signal: AbortSignal;
}

export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly baseSeconds: number;
  readonly maxSeconds: number;
}

/** For the cause `restart`, a compensation undoes even a successful effect, because the workflow begins at its first stage. */
export type CompensationCause = "failure" | "cancel" | "restart";
/** A compensation must be safe even if the stage's `run` never began; the compensation then returns `done` or `skipped`. */
export type Compensation<State> = Undone<State> | Wait<State> | Failed<State> | TooLate<State>;
/** The list `leaves` names effects outside the hub that the compensation did not undo, for operators to see. */
export type Undone<State> = Done<State> | Skipped<State>;
/**
 * The verdict `too_late` means that the stage's effect can no longer be undone, although nothing has failed. The `failure` of a verdict `too_late`
 * says how an operator continues the workflow.
 */
export type TooLate<State> = Verdict<State> & { readonly kind: "too_late"; readonly failure: Failure };

export type StageOverrides = Partial<
  Record<
    FailureClass,
    {
      readonly retry?: "never" | "bounded";
      readonly compensate?: boolean;
      readonly maxAttempts?: number;
      /** After a failure, a stage can change the workflow's final status only to `failed_manual_intervention`, which asks for a person. */
      readonly endsAs?: "failed_manual_intervention";
    }
  >
>;

/**
 * By a stage's `Name`, the compiler checks that a workflow's list of stages fits its list of stage names. The functions of a stage are properties,
 * because with methods the compiler would accept a stage that reads a field which the context lacks.
 */
export interface Stage<Context extends StageRun<unknown, State>, State, Name extends string = string> {
  readonly name: Name;
  readonly title: string;
  /**
   * With the rule `from_top`, the engine may repeat the stage without an observation. With the rule `observe_first`, the engine calls `observe`
   * before every run, so the compiler requires an `observe` (lifecycle 4.10).
   */
  readonly reentry:
    | { readonly rule: "from_top" }
    | { readonly rule: "observe_first"; readonly observe: (context: Context) => Promise<Observation<State>> };
  readonly timeout: {
    readonly seconds: (context: Context) => number;
    readonly failure: (context: Context) => Failure | Promise<Failure>;
  };
  readonly retry: RetryPolicy;
  /** The rules of failure classes that the stage overrides, e.g. no compensation after a deploy. */
  readonly overrides?: StageOverrides;
  readonly run: (context: Context) => Promise<Outcome<State>>;
  readonly compensate?: (context: Context, cause: CompensationCause) => Promise<Compensation<State>>;
}

/**
 * A list of stages that fits a list of names: one stage for each name, in the same order. The compiler refuses a list of stages with a missing, extra
 * or repeated stage, or in a wrong order.
 */
export type StagesOf<Names extends readonly string[], Context extends StageRun<unknown, State>, State> = {
  readonly [I in keyof Names]: Stage<Context, State, Names[I]>;
};
