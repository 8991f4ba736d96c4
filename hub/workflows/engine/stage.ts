import type { Evidence, Failure, FailureClass } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import type { Tx } from "../../db/tx.ts";

/**
 * A stage is a small function of (record, observation) that returns a verdict. It never sleeps, never loops, never retries; it is run
 * again whenever its row is due. `patch` is merged into the workflow's state, `commit` runs in the same transaction as the
 * verdict, so what a stage writes and what it says of itself cannot come apart (architecture 1). No network call inside `commit`.
 */
interface Verdict<State> {
  readonly patch?: Partial<State>;
  readonly commit?: (tx: Tx) => Promise<void>;
  readonly details?: Evidence;
}
export type Done<State> = Verdict<State> & { readonly kind: "done"; readonly message: string };
export type Skipped<State> = Verdict<State> & { readonly kind: "skipped"; readonly message: string };
/** `seconds` is when to look again at the latest; a notification of `on` ends the wait early. */
export type Wait<State> = Verdict<State> & {
  readonly kind: "wait";
  readonly reason: string;
  readonly seconds: number;
  readonly on?: string;
};
/** Goes back to an earlier stage of the same workflow; the stage itself bounds how often, by a counter in the state. */
export type Back<State> = Verdict<State> & { readonly kind: "back"; readonly to: string; readonly message: string };
export type Failed<State> = Verdict<State> & { readonly kind: "failed"; readonly failure: Failure };
export type Outcome<State> = Done<State> | Skipped<State> | Wait<State> | Back<State> | Failed<State>;

/** What `observe` saw. `not_started` lets the engine call `run`; the others are taken as the verdict. */
export type Observation<State> =
  | { readonly kind: "not_started" }
  | Done<State>
  | Skipped<State>
  | Wait<State>
  | Failed<State>;

/** What every stage is given, beside the services that the workflow adds. Times are the database's. */
export interface StageRun<Input, State> {
  readonly workflowId: WorkflowId;
  /** Of this claim. A transaction that a stage opens itself checks it first, so that a run that lost its lease writes nothing. */
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
  /** Aborted when the lease is lost or the hub stops: whatever is under way no longer counts. */
  readonly signal: AbortSignal;
}

export interface RetryPolicy {
  /** Attempts in all, first one included. */
  readonly maxAttempts: number;
  readonly baseSeconds: number;
  readonly maxSeconds: number;
}

/** `restart`: everything is undone, a success included, because the workflow begins again. */
export type CompensationCause = "failure" | "cancel" | "restart";
/** `done` also when there was nothing to undo: compensation must be safe when `run` never began. */
export type Compensation<State> = Undone<State> | Wait<State> | Failed<State> | TooLate<State>;
/** `leaves`: what undoing did not touch, for whoever reads that the workflow was cancelled. */
export type Undone<State> = (Done<State> | Skipped<State>) & { readonly leaves?: Leftover };
/** What the stage did cannot be undone any more, and nothing is wrong with that: the failure says how the workflow goes on. */
export type TooLate<State> = Verdict<State> & { readonly kind: "too_late"; readonly failure: Failure };

export type StageOverrides = Partial<
  Record<
    FailureClass,
    {
      readonly retry?: "never" | "bounded";
      readonly compensate?: boolean;
      readonly maxAttempts?: number;
      /** Only ever to a person's hands. */
      readonly endsAs?: "failed_manual_intervention";
    }
  >
>;

export interface Stage<Context extends StageRun<unknown, State>, State> {
  readonly name: string;
  /** One line for operators: what this stage does. */
  readonly title: string;
  /**
   * `from_top`: running again from the start is harmless. `observe_first`: the engine calls `observe` before every run, so a stage that
   * must look first cannot be written without the look (lifecycle 4.10).
   */
  readonly reentry:
    | { readonly rule: "from_top" }
    | { readonly rule: "observe_first"; observe(context: Context): Promise<Observation<State>> };
  readonly timeout: { seconds(context: Context): number; failure(context: Context): Failure | Promise<Failure> };
  readonly retry: RetryPolicy;
  /** Tightens the taxonomy for this stage, e.g. never compensate after the deploy. */
  readonly overrides?: StageOverrides;
  run(context: Context): Promise<Outcome<State>>;
  compensate?(context: Context, cause: CompensationCause): Promise<Compensation<State>>;
}
