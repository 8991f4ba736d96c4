import type { Evidence, Failure, FailureClass } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import type { Tx } from "../../db/tx.ts";

/**
 * A stage is a small function of (record, observation) that returns a verdict. It never sleeps, loops or retries: the engine runs it
 * again whenever its row is due. `patch` is merged into the workflow's state. `commit` runs in the same transaction as the
 * verdict, so a stage's writes and its verdict cannot disagree (architecture 1). `commit` must make no network call.
 */
interface Verdict<State> {
  readonly patch?: Partial<State>;
  readonly commit?: (tx: Tx) => Promise<void>;
  readonly details?: Evidence;
}
export type Done<State> = Verdict<State> & { readonly kind: "done"; readonly message: string };
export type Skipped<State> = Verdict<State> & { readonly kind: "skipped"; readonly message: string };
/** `seconds` is the latest time of the next run; a notification of the key `on` ends the wait early. */
export type Wait<State> = Verdict<State> & {
  readonly kind: "wait";
  readonly reason: string;
  readonly seconds: number;
  readonly on?: string;
};
/** Goes back to an earlier stage of the same workflow. The stage itself limits how often, by a counter in the state. */
export type Back<State> = Verdict<State> & { readonly kind: "back"; readonly to: string; readonly message: string };
/** Enters the same stage anew: the engine commits `patch`, and the stage's attempts and its deadline begin again. */
export type EnterAgain<State> = Verdict<State> & { readonly kind: "enter_again"; readonly message: string };
export type Failed<State> = Verdict<State> & { readonly kind: "failed"; readonly failure: Failure };
export type Outcome<State> =
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Back<State>
  | EnterAgain<State>
  | Failed<State>;

/** The result of `observe`. After `not_started` the engine calls `run`; every other result is the verdict. */
export type Observation<State> =
  | { readonly kind: "not_started" }
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Failed<State>;

/** The input of every stage, beside the services that the workflow adds. Times are the database's. */
export interface StageRun<Input, State> {
  readonly workflowId: WorkflowId;
  /** The fence of this claim. A transaction that a stage opens itself checks it first, so that a run that lost its lease writes nothing. */
  readonly fence: number;
  readonly stage: string;
  /** 1 for the first try, +1 for each retry of the engine. */
  readonly attempt: number;
  /** True when an earlier run of this stage entry may have acted outside already. */
  readonly reentered: boolean;
  readonly enteredAt: Date;
  readonly deadline: Date;
  readonly now: Date;
  readonly input: Input;
  readonly state: Readonly<Partial<State>>;
  /** Aborted when the lease is lost or the hub stops: the result of the run will not be stored. */
  readonly signal: AbortSignal;
}

export interface RetryPolicy {
  /** Attempts in all, first one included. */
  readonly maxAttempts: number;
  readonly baseSeconds: number;
  readonly maxSeconds: number;
}

/** `restart`: everything is undone, even after a success, because the workflow begins again. */
export type CompensationCause = "failure" | "cancel" | "restart";
/** `done` also when there was nothing to undo: compensation must be safe when `run` never began. */
export type Compensation<State> = Undone<State> | Wait<State> | Failed<State> | TooLate<State>;
/** `leaves`: effects outside that compensation did not undo, for the readers of a cancelled workflow. */
export type Undone<State> = (Done<State> | Skipped<State>) & { readonly leaves?: Leftover };
/** The stage's effect can no longer be undone, and that is no fault: the failure says how the workflow continues. */
export type TooLate<State> = Verdict<State> & { readonly kind: "too_late"; readonly failure: Failure };

export type StageOverrides = Partial<
  Record<
    FailureClass,
    {
      readonly retry?: "never" | "bounded";
      readonly compensate?: boolean;
      readonly maxAttempts?: number;
      /** A stage may only change the final status to the one that needs a person. */
      readonly endsAs?: "failed_manual_intervention";
    }
  >
>;

/**
 * `Name` is the stage's own name, so that the compiler compares a workflow's list of stages with its list of names. The functions are properties and not
 * methods: the compiler then refuses a stage in a workflow whose context lacks what the stage reads.
 */
export interface Stage<Context extends StageRun<unknown, State>, State, Name extends string = string> {
  readonly name: Name;
  /** One line for operators: what this stage does. */
  readonly title: string;
  /**
   * `from_top`: running again from the start is harmless. `observe_first`: the engine calls `observe` before every run, so a stage that
   * must observe first cannot be written without `observe` (lifecycle 4.10).
   */
  readonly reentry:
    | { readonly rule: "from_top" }
    | { readonly rule: "observe_first"; readonly observe: (context: Context) => Promise<Observation<State>> };
  readonly timeout: {
    readonly seconds: (context: Context) => number;
    readonly failure: (context: Context) => Failure | Promise<Failure>;
  };
  readonly retry: RetryPolicy;
  /** Tightens the taxonomy for this stage, e.g. never compensate after the deploy. */
  readonly overrides?: StageOverrides;
  readonly run: (context: Context) => Promise<Outcome<State>>;
  readonly compensate?: (context: Context, cause: CompensationCause) => Promise<Compensation<State>>;
}

/**
 * The stages of a list of names: one stage for each name, in the same order. A name without its stage, a stage too many, one twice or
 * two in the wrong order do not compile.
 */
export type StagesOf<Names extends readonly string[], Context extends StageRun<unknown, State>, State> = {
  readonly [I in keyof Names]: Stage<Context, State, Names[I]>;
};
