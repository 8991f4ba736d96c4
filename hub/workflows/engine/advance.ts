import { FAILURES, type Failure, NOT_UNDONE, ruleOf } from "../../../shared/failures.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import type { StageEventWrite } from "../../db/queries/workflow-events.ts";
import type { ClaimedWorkflow, CompensationPlan, WorkflowTransition } from "../../db/queries/workflows.ts";
import { type Absence, absenceReason, deadlineIfBack, oneMoreLook, outlasted } from "./absence.ts";
import { compensates, decideRetry } from "./retry.ts";
import type { Compensation, Outcome, RetryPolicy, StageOverrides } from "./stage.ts";
import { isPast, wakeAfterWait } from "./timeout.ts";
import { engineFacts, type Facts, stateOf, withAbsence } from "./workflow.ts";

/** All inputs of a decision about a workflow's row are plain data, so that a test can cover every case. */
export interface Rules {
  readonly stageNames: readonly string[];
  readonly compensable: readonly string[];
  readonly stage: {
    readonly name: string;
    readonly retry: RetryPolicy;
    readonly overrides?: StageOverrides | undefined;
    readonly deadline: Date;
  };
  /** A random number in [0, 1) for the jitter of the backoff. */
  readonly random: number;
}

/**
 * `retryAfterSeconds` comes from the answer of the service that failed. The field `final` is true after a timeout, because the engine does not retry
 * a stage after its timeout.
 */
export interface FailureMet {
  readonly failure: Failure;
  readonly retryAfterSeconds?: number | null;
  readonly final?: boolean;
  readonly patch?: Facts | undefined;
}

/**
 * Returns values for a workflow's row that keep its attempt and deadline, and that record neither a wait nor an unavailable service. Each decision of
 * the engine starts from the values of `unchanged`, and overrides some of them.
 */
function unchanged(row: ClaimedWorkflow, stage: string, patch: Facts | undefined): WorkflowTransition {
  return {
    status: row.status,
    stage,
    attempt: row.attempt,
    entersStage: false,
    deadline: row.stageDeadline,
    waitReason: null,
    waitOn: null,
    wakeInSeconds: 0,
    state: withAbsence({ ...stateOf(row), ...patch }, undefined),
    failure: null,
    compensation: null,
    events: [],
  };
}

/** After the absence of a service, a stage's deadline is later by the time of the absence, because the stage could not use that time. */
export const deadlineForLook = (row: ClaimedWorkflow): Date | null =>
  row.stageDeadline === null ? null : deadlineIfBack(row.stageDeadline, engineFacts(row.state).absence, row.now);

/**
 * The wait reason names the unavailable service and says since when the service is unavailable. A wait for an unavailable service does not change the
 * stored deadline of the stage. The engine records one event for each new error code of an unavailable service, and not one event for each run.
 */
function waitUntilBack(
  row: ClaimedWorkflow,
  base: WorkflowTransition,
  away: { readonly failure: Failure; readonly absence: Absence; readonly deadline: Date; readonly inSeconds: number },
  event: Omit<StageEventWrite, "status">,
): WorkflowTransition {
  const { failure, absence, deadline } = away;
  const wakeInSeconds = wakeAfterWait({ seconds: away.inSeconds }, { waitOn: null, now: row.now, deadline });
  const waitReason = absenceReason(failure, absence, new Date(row.now.getTime() + wakeInSeconds * 1000));
  const told = engineFacts(row.state).absence?.code === failure.code;
  return {
    ...base,
    waitReason,
    wakeInSeconds,
    state: withAbsence(base.state, absence),
    events: told ? [] : [{ ...event, status: "waiting", message: `${waitReason}. ${failure.message}` }],
  };
}

export function advance(row: ClaimedWorkflow, outcome: Outcome<Facts>, rules: Rules): WorkflowTransition {
  const stage = rules.stage.name;
  const base = { ...unchanged(row, stage, outcome.patch), deadline: rules.stage.deadline };
  const event = (status: StageEventWrite["status"], message: string): StageEventWrite => ({
    stage,
    attempt: row.attempt,
    status,
    message,
    ...(outcome.details === undefined ? {} : { details: outcome.details }),
  });
  switch (outcome.kind) {
    case "done":
      return leave(row, base, rules, event("succeeded", outcome.message), outcome.leaves);
    case "skipped":
      return leave(row, base, rules, event("skipped", outcome.message), outcome.leaves);
    case "wait":
      return {
        ...base,
        waitReason: outcome.reason,
        waitOn: outcome.on ?? null,
        wakeInSeconds: wakeAfterWait(outcome, { waitOn: row.waitOn, now: row.now, deadline: rules.stage.deadline }),
        events: outcome.reason === row.waitReason ? [] : [event("waiting", outcome.reason)],
      };
    case "back":
    case "enter_again": {
      const to = outcome.kind === "back" ? outcome.to : stage;
      return { ...enter(base, to), events: [event("returned", outcome.message), started(to)] };
    }
    case "failed":
      return fail(row, { failure: outcome.failure, patch: outcome.patch }, rules);
  }
}

const started = (stage: string): StageEventWrite => ({ stage, attempt: 1, status: "started", message: "Started" });

const enter = (base: WorkflowTransition, stage: string): WorkflowTransition => ({
  ...base,
  stage,
  attempt: 1,
  entersStage: true,
  deadline: null,
});

function leave(
  row: ClaimedWorkflow,
  base: WorkflowTransition,
  rules: Rules,
  left: StageEventWrite,
  leaves: Leftover | undefined,
): WorkflowTransition {
  const next = rules.stageNames[rules.stageNames.indexOf(rules.stage.name) + 1];
  if (next !== undefined) return { ...enter(base, next), events: [left, started(next)] };
  const status: WorkflowStatus = engineFacts(row.state).adopting === true ? "reconciled" : "completed";
  return { ...base, ...(leaves === undefined ? {} : { leaves }), status, wakeInSeconds: null, events: [left] };
}

/** Decides after a stage's failure between a retry, a wait for an unavailable service, compensation, and the end (lifecycle 4.7). */
export function fail(row: ClaimedWorkflow, met: FailureMet, rules: Rules): WorkflowTransition {
  const { failure } = met;
  const stage = rules.stage.name;
  const base = { ...unchanged(row, stage, met.patch), deadline: rules.stage.deadline, failure };
  if (met.final === true) return giveUp(row, base, failure, rules);
  const known = engineFacts(row.state).absence;
  const absence = oneMoreLook(known, failure, row.now);
  const tries = { attempt: row.attempt, looks: absence.looks };
  const retry = decideRetry(rules.stage, failure, tries, rules.random, met.retryAfterSeconds ?? null);
  const event = { stage, attempt: row.attempt, message: failure.message, details: detailsOf(failure) };
  switch (retry.retry) {
    case "no":
      return giveUp(row, base, failure, rules);
    case "when_back": {
      const deadline = (known === undefined ? null : row.stageDeadline) ?? rules.stage.deadline;
      if (isPast(deadline, row.now)) return giveUp(row, base, outlasted(failure, absence, row.now), rules);
      return waitUntilBack(row, { ...base, deadline }, { failure, absence, deadline, ...retry }, event);
    }
    case "attempt":
      return {
        ...base,
        attempt: row.attempt + 1,
        wakeInSeconds: retry.inSeconds,
        events: [{ ...event, status: "retrying" }],
      };
  }
}

function giveUp(row: ClaimedWorkflow, base: WorkflowTransition, failure: Failure, rules: Rules): WorkflowTransition {
  const stage = rules.stage.name;
  const details = detailsOf(failure);
  const failed = { stage, attempt: row.attempt, status: "failed", message: failure.message, details } as const;
  const endsAs = rules.stage.overrides?.[failure.class]?.endsAs ?? ruleOf(failure).endsAs;
  const undo = compensates(rules.stage, failure) ? stagesToUndo(rules) : [];
  if (undo.length > 0) {
    const plan = planOf("failure", undo, endsAs);
    return { ...base, failure, status: "compensating", compensation: plan, events: [failed] };
  }
  return { ...base, failure, status: endsAs, wakeInSeconds: null, events: [failed] };
}

const detailsOf = (failure: Failure): Facts => ({
  failure_class: failure.class,
  error_code: failure.code,
  ...failure.evidence,
});

/**
 * The list of stages to compensate does not depend on the workflow's present stage. After the verb `rerun`, the workflow may be at an earlier stage
 * than the stages that it has already carried out. Each stage's compensation checks itself whether it has anything to undo.
 */
export const stagesToUndo = (rules: Pick<Rules, "compensable">): string[] => [...rules.compensable].reverse();

export const planOf = (
  cause: CompensationPlan["cause"],
  stages: readonly string[],
  endsAs: WorkflowStatus,
): CompensationPlan => ({ cause, stages, endsAs, attempt: 1, startedAt: null });

/** Returns new values for the row of a workflow after a run that executed no stage; the row's stage, failure and compensation stay unchanged. */
export const atRest = (row: ClaimedWorkflow, stage: string): WorkflowTransition => ({
  ...unchanged(row, stage, undefined),
  failure: failureOf(row),
  compensation: row.compensation as CompensationPlan | null,
});

/** The argument `verdict` is null if the first stage in the compensation plan has no compensation. */
export function compensate(
  row: ClaimedWorkflow,
  plan: CompensationPlan,
  verdict: Compensation<Facts> | null,
  rules: Rules,
  retryAfterSeconds: number | null = null,
): WorkflowTransition {
  const base = { ...unchanged(row, row.stage, verdict?.patch), compensation: plan, failure: failureOf(row) };
  const [stage, ...rest] = plan.stages;
  if (stage === undefined || verdict === null) return concluded(base, plan, []);
  const event = (status: StageEventWrite["status"], message: string): StageEventWrite => ({
    stage,
    attempt: plan.attempt,
    status,
    message,
    ...(verdict.details === undefined ? {} : { details: verdict.details }),
  });
  switch (verdict.kind) {
    case "done":
    case "skipped": {
      const events = [event(verdict.kind === "done" ? "compensated" : "skipped", verdict.message)];
      const left = verdict.leaves === undefined ? plan : { ...plan, leaves: verdict.leaves };
      if (rest.length === 0) return concluded(base, left, events);
      return { ...base, compensation: { ...left, stages: rest, attempt: 1, startedAt: null }, events };
    }
    case "wait":
      if (isPast(rules.stage.deadline, row.now)) return stuck(base, plan, event, verdict.reason, null);
      return {
        ...base,
        waitReason: verdict.reason,
        waitOn: verdict.on ?? null,
        wakeInSeconds: wakeAfterWait(verdict, { waitOn: row.waitOn, now: row.now, deadline: rules.stage.deadline }),
        events: verdict.reason === row.waitReason ? [] : [event("waiting", verdict.reason)],
      };
    case "too_late":
      return {
        ...base,
        status: ruleOf(verdict.failure).endsAs,
        failure: verdict.failure,
        compensation: null,
        wakeInSeconds: null,
        events: [event("failed", verdict.failure.message)],
      };
    case "failed":
      return undoAgain(row, base, { plan, failure: verdict.failure, retryAfterSeconds, event }, rules);
  }
}

type StageEventOf = (status: StageEventWrite["status"], message: string) => StageEventWrite;

/** The engine retries a failed compensation, or waits for an unavailable service, until the compensation's own deadline. */
function undoAgain(
  row: ClaimedWorkflow,
  base: WorkflowTransition,
  met: {
    readonly plan: CompensationPlan;
    readonly failure: Failure;
    readonly retryAfterSeconds: number | null;
    readonly event: StageEventOf;
  },
  rules: Rules,
): WorkflowTransition {
  const { plan, failure, event } = met;
  const { deadline } = rules.stage;
  const absence = oneMoreLook(engineFacts(row.state).absence, failure, row.now);
  const tries = { attempt: plan.attempt, looks: absence.looks };
  const retry = decideRetry(rules.stage, failure, tries, rules.random, met.retryAfterSeconds);
  if (retry.retry === "when_back") {
    if (!isPast(deadline, row.now)) {
      const inSeconds = retry.inSeconds;
      const told = { ...event("waiting", failure.message), details: detailsOf(failure) };
      return waitUntilBack(row, base, { failure, absence, deadline, inSeconds }, told);
    }
    const late = outlasted(failure, absence, row.now);
    return stuck(base, plan, event, late.message, late);
  }
  if (retry.retry === "no" || isPast(deadline, row.now)) return stuck(base, plan, event, failure.message, failure);
  return {
    ...base,
    compensation: { ...plan, attempt: plan.attempt + 1 },
    wakeInSeconds: retry.inSeconds,
    events: [event("retrying", failure.message)],
  };
}

function concluded(
  base: WorkflowTransition,
  plan: CompensationPlan,
  events: readonly StageEventWrite[],
): WorkflowTransition {
  if (plan.restartAt !== undefined) {
    return {
      ...enter(base, plan.restartAt),
      status: "pending",
      state: {},
      failure: null,
      compensation: null,
      events: [...events, started(plan.restartAt)],
    };
  }
  const failure = plan.cause === "failure" ? base.failure : null;
  const left = plan.leaves === undefined || failure !== null ? {} : { leaves: plan.leaves };
  return { ...base, ...left, status: plan.endsAs, failure, compensation: null, wakeInSeconds: null, events };
}

/** A workflow whose compensation failed for good ends as `failed_manual_intervention`, whatever its compensation plan says. */
function stuck(
  base: WorkflowTransition,
  plan: CompensationPlan,
  event: StageEventOf,
  reason: string,
  cause: Failure | null,
): WorkflowTransition {
  const [stage = ""] = plan.stages;
  const original = base.failure ?? cause ?? unfinished(stage, reason);
  return {
    ...base,
    status: "failed_manual_intervention",
    failure: {
      ...original,
      evidence: { ...original.evidence, compensation_stage: stage, [NOT_UNDONE]: reason },
    } as Failure,
    compensation: null,
    wakeInSeconds: null,
    events: [event("failed", `Could not be undone: ${reason}`)],
  };
}

const unfinished = (stage: string, reason: string): Failure => ({
  class: "state_ambiguity",
  code: "node_state_conflict",
  message: `Undoing ${stage} did not end in time: ${reason}. Look at the machine, then restart clean or cancel again.`,
  evidence: {},
});

export function failureOf(row: ClaimedWorkflow): Failure | null {
  if (row.failureClass === null || !Object.hasOwn(FAILURES, row.failureClass)) return null;
  return {
    class: row.failureClass,
    code: row.failureCode,
    message: row.failureMessage ?? "",
    evidence: row.evidence,
  } as Failure;
}
