import { ApiError } from "../../../shared/api/errors.ts";
import { type Failure, failure } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { type AuditSource, recordAudit } from "../../db/queries/audit-logs.ts";
import {
  forgetStop,
  makeDue,
  markStageRun,
  requestStop,
  takeFromRunner,
  tellRunners,
} from "../../db/queries/workflow-stops.ts";
import {
  type ClaimedWorkflow,
  type CompensationPlan,
  isEnded,
  lockWorkflow,
  moveWorkflow,
  readWorkflow,
  type StopRequest,
  stopRequestOf,
  type WorkflowTransition,
} from "../../db/queries/workflows.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { failureOf, planOf, stagesToUndo } from "./advance.ts";
import { type Effect, ENDS_AS, effectAtCommit, effectOf, type Verb, type VerbTarget } from "./recovery.ts";
import { ENGINE_FACTS, type EngineFacts, engineFacts, type Facts, stateOf, type Workflow } from "./workflow.ts";

export interface VerbRequest extends Omit<AuditSource, "requestId"> {
  readonly workflowId: WorkflowId;
  readonly verb: Verb;
  readonly reason: string;
  readonly requestId?: string | null;
}

/**
 * Carries out an operator's verb and writes the verb to the audit log (lifecycle 4.12). If a hub is running the workflow, `applyVerb` only records a
 * verb that stops the workflow, such as `cancel`. A recorded verb takes effect when the hub that runs the workflow commits its run. After a verb that
 * stops the workflow, the hub keeps the result of the stage's run, and starts no compensation while a call of the run may still take effect. If the
 * verb cannot be applied, `applyVerb` throws the ApiError `not_found` or `verb_not_allowed`.
 */
export async function applyVerb(tx: Tx, kinds: readonly Workflow[], request: VerbRequest): Promise<WorkflowRow> {
  const row = await lockWorkflow(tx, request.workflowId);
  if (row === null) throw new ApiError("not_found", `There is no workflow ${request.workflowId}.`);
  const workflow = kinds.find((kind) => kind.kind === row.kind);
  const stage = workflow?.nameToday(row.stage);
  if (workflow === undefined || stage === undefined || stage === null) {
    throw new ApiError("conflict", `This hub does not know the stage ${row.kind}/${row.stage}. Ask a newer hub.`);
  }
  const effect = effectOf(request.verb, verbTarget(row));
  if (effect === "refused") {
    const pending = stopRequestOf(row);
    const besides = pending === null ? "" : `, and ${pending.verb} takes effect as soon as its stage's run has ended`;
    throw new ApiError(
      "verb_not_allowed",
      `${request.verb} is not possible while the workflow is ${row.status}${besides}.`,
    );
  }
  const because = `${request.verb} by ${request.actor}: ${request.reason}`;
  if (effect === "at_commit") await requestStop(tx, row.id, { verb: request.verb as StopRequest["verb"], because });
  else if (effect !== "already") await carryOut(tx, workflow, row, stage, effect, because);
  // A verb such as `retry` only makes a workflow that is already `running` due at once. An operator retries a running workflow, for example, if the
  // agent has lost the task for which the workflow waits (state model 8).
  else if (row.status === "running") await makeDue(tx, row.id);
  const after = (await readWorkflow(tx, row.id)) ?? row;
  await recordAudit(tx, {
    actor: request.actor,
    role: request.role,
    ...(request.via === undefined ? {} : { via: request.via }),
    address: request.address ?? null,
    action: `workflow.${request.verb}`,
    target: `workflows/${row.id}`,
    reason: request.reason,
    requestId: request.requestId ?? null,
    details: {
      effect,
      prior: { status: row.status, stage: row.stage, attempt: row.attempt },
      now: { status: after.status, stage: after.stage },
      expected: { status: ENDS_AS[request.verb] },
    },
  });
  await tellRunners(tx);
  return after;
}

const verbTarget = (row: WorkflowRow): VerbTarget => ({
  status: row.status,
  ran: row.startedAt !== null,
  adopting: engineFacts(row.state).adopting === true,
  frozen: engineFacts(row.state).frozen === true,
  undoing: row.status === "compensating" ? ((row.compensation as CompensationPlan | null)?.cause ?? null) : null,
  leased: row.leaseOwner !== null,
  requested: stopRequestOf(row)?.verb ?? null,
});

/**
 * Carries out a verb, such as `cancel`, that stops the workflow and that an operator gave during a run. `carryOutStop` writes in the transaction in
 * which its caller stores the result of the run.
 */
export async function carryOutStop(
  tx: Tx,
  workflow: Workflow,
  row: ClaimedWorkflow,
): Promise<WorkflowTransition | null> {
  const stop = stopRequestOf(row);
  if (stop === null) return null;
  const effect = effectAtCommit(stop.verb, verbTarget(row));
  const stage = workflow.nameToday(row.stage) ?? row.stage;
  if (effect !== "already") return carryOut(tx, workflow, row, stage, effect, stop.because);
  await forgetStop(tx, row.id);
  return null;
}

async function carryOut(
  tx: Tx,
  workflow: Workflow,
  row: ClaimedWorkflow,
  stage: string,
  effect: Effect,
  because: string,
): Promise<WorkflowTransition> {
  const target = decideMove(workflow, row, stage, effect, because);
  const fence = await takeFromRunner(tx, row);
  await moveWorkflow(tx, { ...row, fence, claim: undefined }, target.transition);
  if (target.mayHaveActed) await markStageRun(tx, row.id);
  if (isEnded(target.transition.status)) {
    await workflow.hooks.onEnded?.(tx, row, target.transition);
  }
  return target.transition;
}

interface Target {
  readonly transition: WorkflowTransition;
  /** True if an earlier run of the stage may have acted outside the hub, so that the stage's next run must observe before it acts. */
  readonly mayHaveActed: boolean;
}

function decideMove(workflow: Workflow, row: ClaimedWorkflow, stage: string, effect: Effect, because: string): Target {
  const base: WorkflowTransition = {
    status: row.status,
    stage,
    attempt: row.attempt,
    entersStage: false,
    deadline: row.stageDeadline,
    waitReason: null,
    waitOn: null,
    wakeInSeconds: 0,
    state: stateOf(row),
    failure: failureOf(row),
    compensation: null,
    events: [{ stage, attempt: row.attempt, status: "returned", message: because }],
  };
  const again = (at: string, state: Facts): Target => ({
    transition: { ...base, status: "pending", stage: at, attempt: 1, entersStage: true, failure: null, state },
    mayHaveActed: true,
  });
  const undo = (plan: CompensationPlan): Target => ({
    transition: { ...base, status: "compensating", compensation: plan },
    mayHaveActed: false,
  });
  const state = thawed(row);
  const recovered = without(state, workflow.forgottenOnRecovery);
  const first = workflow.stageNames[0] ?? stage;
  switch (effect) {
    case "retry_stage":
      return again(workflow.restartPoint("retry", stage), recovered);
    case "resume_from_checkpoint":
      return again(workflow.restartPoint("resume", stage), recovered);
    case "rerun_from_top": {
      const later = workflow.rerunPoint(state);
      return later === null ? again(first, without(recovered, workflow.forgottenOnRerun)) : again(later, recovered);
    }
    case "adopt_observed":
      return again(stage, { ...recovered, [ENGINE_FACTS]: { adopting: true } });
    case "undo_and_restart":
      return undo({ ...planOf("restart", stagesToUndo(workflow), "pending"), restartAt: first });
    case "undo_and_cancel":
      return undo(planOf("cancel", stagesToUndo(workflow), "cancelled"));
    case "end_as_cancelled": {
      const { restartAt: _restartAt, ...plan } = row.compensation as CompensationPlan;
      return undo({ ...plan, cause: "cancel", endsAs: "cancelled" });
    }
    case "cancel_now":
      return { transition: { ...base, status: "cancelled", wakeInSeconds: null, failure: null }, mayHaveActed: false };
    case "freeze":
      return {
        transition: {
          ...base,
          status: "failed_manual_intervention",
          wakeInSeconds: null,
          state: { ...state, [ENGINE_FACTS]: { ...engineFacts(row.state), frozen: true } satisfies EngineFacts },
          failure: frozen(base.failure, because),
        },
        mayHaveActed: false,
      };
    case "already":
    case "refused":
    case "at_commit":
      throw new Error(`${effect} changes no row`);
  }
}

function thawed(row: ClaimedWorkflow): Facts {
  const { [ENGINE_FACTS]: _engine, ...facts } = stateOf(row);
  return engineFacts(row.state).adopting === true ? { ...facts, [ENGINE_FACTS]: { adopting: true } } : facts;
}

const without = (state: Facts, keys: readonly string[]): Facts =>
  Object.fromEntries(Object.entries(state).filter(([key]) => !keys.includes(key)));

const frozen = (known: Failure | null, because: string): Failure =>
  known ?? failure("state_ambiguity", "stopped_by_operator", `An operator stopped this workflow: ${because}`);
