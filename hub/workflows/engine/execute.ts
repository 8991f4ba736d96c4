import type { Failure } from "../../../shared/failures.ts";
import {
  type ClaimedWorkflow,
  type CompensationPlan,
  stopRequestOf,
  type WorkflowTransition,
} from "../../db/queries/workflows.ts";
import type { Tx } from "../../db/tx.ts";
import { advance, atRest, compensate, deadlineForLook, fail, type Rules } from "./advance.ts";
import type { Outcome, RetryPolicy } from "./stage.ts";
import { isPast } from "./timeout.ts";
import type { BoundStage, Facts, Workflow } from "./workflow.ts";

/**
 * `ClassifyError` returns null if the error says nothing about the stage, for example because the hub's own database was unavailable. A run whose
 * error `ClassifyError` maps to null does not count as an attempt, and the engine repeats the run.
 */
export type ClassifyError = (
  error: unknown,
) => { readonly failure: Failure; readonly retryAfterSeconds: number | null } | null;

export interface Step {
  readonly transition: WorkflowTransition;
  readonly commit?: ((tx: Tx) => Promise<void>) | undefined;
  /** Returns new values for the workflow's row after an error in the stage's `commit`; null if the error is no failure of the stage. */
  commitFailed?(error: unknown): WorkflowTransition | null;
}

/** A compensation gets more attempts than a stage, because a person must finish a compensation that fails for good. */
const UNDO_RETRY: RetryPolicy = { maxAttempts: 20, baseSeconds: 2, maxSeconds: 60 };

interface Run {
  readonly workflow: Workflow;
  readonly row: ClaimedWorkflow;
  readonly signal: AbortSignal;
  readonly classifyError: ClassifyError;
}

/**
 * Runs the present stage of a claimed workflow once: observes, acts at most once, and returns the result to commit. `execute` returns null for a run
 * that does not count as an attempt, e.g. because the hub's database was unavailable. No database transaction is open while a stage runs.
 */
export async function execute(run: Run): Promise<Step | null> {
  const { workflow, row } = run;
  const stage = workflow.nameToday(row.stage);
  if (stage === null) throw new Error(`claimed a row at the unknown stage ${row.stage}`);
  // If an earlier hub recorded a verb such as `cancel` and did not carry the verb out, the run executes no stage. When the hub commits a run of a
  // stage, it carries out the verb that an operator has recorded in the workflow's row.
  if (stopRequestOf(row) !== null) return { transition: atRest(row, stage) };
  if (row.status === "compensating") return undo(run);
  return forward(run, stage);
}

async function forward(run: Run, stageName: string): Promise<Step | null> {
  const { workflow, row } = run;
  const entry = {
    enteredAt: row.stageEnteredAt ?? row.now,
    deadline: deadlineForLook(row),
    attempt: row.attempt,
    reentered: row.stageRuns > 1,
  };
  let stage: BoundStage | undefined;
  try {
    stage = await workflow.bind(row, stageName, entry, run.signal);
    const late = isPast(stage.deadline, row.now);
    const outcome = await look(stage, late);
    const rules = rulesOf(workflow, stage);
    if (late && !isResult(outcome)) {
      return {
        transition: fail(row, { failure: await witnessed(stage, await stage.timeoutFailure()), final: true }, rules),
      };
    }
    const commitFailed = (error: unknown): WorkflowTransition | null => {
      const met = run.classifyError(error);
      return met === null ? null : fail(row, met, rules);
    };
    const told = outcome.kind === "failed" ? { ...outcome, failure: await witnessed(stage, outcome.failure) } : outcome;
    return { transition: advance(row, told, rules), commit: outcome.commit, commitFailed };
  } catch (error) {
    const met = run.classifyError(error);
    if (met === null) return null;
    const rules = rulesOf(workflow, stage ?? unbound(stageName, row));
    const failure = stage === undefined ? met.failure : await witnessed(stage, met.failure).catch(() => met.failure);
    return { transition: fail(row, { ...met, failure }, rules) };
  }
}

/** Adds the last observation to the stage's own evidence of the failure (lifecycle 4.12). */
async function witnessed(stage: BoundStage, failure: Failure): Promise<Failure> {
  return { ...failure, evidence: { ...(await stage.observedEvidence()), ...failure.evidence } } as Failure;
}

/** After its deadline, a stage still observes so that the engine accepts a late success, but the stage does not act. */
async function look(stage: BoundStage, late: boolean): Promise<Outcome<Facts>> {
  if (stage.observe !== null) {
    const seen = await stage.observe();
    if (seen.kind !== "not_started") return seen;
  }
  if (late) return { kind: "wait", reason: "out of time", seconds: 0 };
  return stage.run();
}

/** After a stage's deadline, the engine turns a verdict that does not end the stage into a timeout. */
const isResult = ({ kind }: Outcome<Facts>): boolean => kind === "done" || kind === "skipped" || kind === "failed";

const rulesOf = (workflow: Workflow, stage: Rules["stage"]): Rules => ({
  stageNames: workflow.stageNames,
  compensable: workflow.compensable,
  stage,
  random: Math.random(),
});

/**
 * If the hub cannot read a workflow's data, the workflow's stage gets five attempts. A stage whose data the hub cannot read gets one hour if the
 * workflow's row holds no deadline.
 */
const unbound = (name: string, row: ClaimedWorkflow): Rules["stage"] => ({
  name,
  retry: { maxAttempts: 5, baseSeconds: 1, maxSeconds: 30 },
  deadline: row.stageDeadline ?? new Date(row.now.getTime() + 3600_000),
});

async function undo(run: Run): Promise<Step | null> {
  const { workflow, row } = run;
  const stored = row.compensation as CompensationPlan;
  const plan: CompensationPlan = { ...stored, startedAt: stored.startedAt ?? row.now.toISOString() };
  const name = plan.stages[0] === undefined ? null : workflow.nameToday(plan.stages[0]);
  if (name === null) return { transition: compensate(row, plan, null, rulesOf(workflow, unbound("", row))) };
  const entry = {
    enteredAt: new Date(plan.startedAt ?? row.now),
    deadline: null,
    attempt: plan.attempt,
    reentered: true,
  };
  let stage: BoundStage | undefined;
  const rules = (): Rules => rulesOf(workflow, { ...(stage ?? unbound(name, row)), retry: UNDO_RETRY });
  const failed = (error: unknown): WorkflowTransition | null => {
    const met = run.classifyError(error);
    if (met === null) return null;
    return compensate(row, plan, { kind: "failed", failure: met.failure }, rules(), met.retryAfterSeconds);
  };
  try {
    stage = await workflow.bind(row, name, entry, run.signal);
    const verdict = (await stage.compensate?.(plan.cause)) ?? null;
    return { transition: compensate(row, plan, verdict, rules()), commit: verdict?.commit, commitFailed: failed };
  } catch (error) {
    const transition = failed(error);
    return transition === null ? null : { transition };
  }
}
