import { STOP_VERBS, type StopVerb, WORKFLOW_STATUSES, type WorkflowStatus } from "../../../shared/workflow-status.ts";

/** The verbs of an operator for a workflow (lifecycle 4.9, decision W1). */
export const VERBS = [
  "retry",
  "resume",
  "rerun",
  "restart_clean",
  "cancel",
  "adopt",
  "mark_manual_intervention",
] as const;
export type Verb = (typeof VERBS)[number];

/**
 * The effect of a verb on a workflow's row in a certain status. `already` means that the row is already in the state that the verb asks for. A
 * repeated request for a verb changes nothing and gets the same answer as the first request. `refused` means that the API answers 409.
 */
export type Effect =
  | "already"
  | "refused"
  /** By the effect `retry_stage`, the workflow runs its current stage again, with new attempts and a new deadline. */
  | "retry_stage"
  /** By the effect `resume_from_checkpoint`, the workflow continues from the stage that its workflow kind names for `resume`. */
  | "resume_from_checkpoint"
  /** By the effect `rerun_from_top`, the workflow runs again from its first stage, and its stages adopt effects that already exist. */
  | "rerun_from_top"
  /** By the effect `undo_and_restart`, the workflow undoes all its effects, forgets its facts and begins again at its first stage. */
  | "undo_and_restart"
  | "cancel_now"
  /**
   * A hub is running a stage of the workflow, so the verb takes effect when the run ends. Until the end of the run, the stage may still act outside
   * the hub, for example in MAAS.
   */
  | "at_commit"
  | "undo_and_cancel"
  /** If an operator cancels a workflow during its compensation, the compensation continues, and the workflow's row ends as `cancelled`. */
  | "end_as_cancelled"
  /** By the verb `adopt`, the current stage observes again and adopts the effects that it finds; the workflow later ends as `reconciled`. */
  | "adopt_observed"
  /**
   * By the verb `mark_manual_intervention`, the workflow stops until an operator continues it with another verb. A row that an operator has already
   * stopped by `mark_manual_intervention` does not change.
   */
  | "freeze";

/**
 * The statuses that the table of verbs distinguishes. `pending_again` is a pending row that has run before, and so may have acted outside the hub.
 */
export const STANDINGS = [...WORKFLOW_STATUSES, "pending_again"] as const;
export type Standing = (typeof STANDINGS)[number];

type Row = Readonly<Record<Standing, Effect>>;

const live = (effect: {
  running: Effect;
  failed: Effect;
  pending?: Effect;
  again?: Effect;
  compensating?: Effect;
}): Row => ({
  pending: effect.pending ?? effect.running,
  pending_again: effect.again ?? effect.running,
  running: effect.running,
  compensating: effect.compensating ?? "refused",
  failed_retryable: effect.failed,
  failed_manual_intervention: effect.failed,
  completed: "refused",
  cancelled: "refused",
  reconciled: "refused",
});

export const RECOVERY = {
  retry: live({ running: "already", failed: "retry_stage" }),
  resume: live({ running: "already", failed: "resume_from_checkpoint" }),
  rerun: live({ running: "already", failed: "rerun_from_top" }),
  restart_clean: live({
    pending: "already",
    again: "undo_and_restart",
    running: "undo_and_restart",
    failed: "undo_and_restart",
  }),
  cancel: {
    ...live({
      pending: "cancel_now",
      again: "undo_and_cancel",
      running: "undo_and_cancel",
      compensating: "end_as_cancelled",
      failed: "undo_and_cancel",
    }),
    cancelled: "already",
  },
  adopt: { ...live({ running: "already", again: "adopt_observed", failed: "adopt_observed" }), reconciled: "already" },
  mark_manual_intervention: live({ running: "freeze", compensating: "freeze", failed: "freeze" }),
} as const satisfies Record<Verb, Row>;

/** The status that the workflow should reach after each verb. The audit log calls the status after the verb the expected target (lifecycle 4.12). */
export const ENDS_AS = {
  retry: "completed",
  resume: "completed",
  rerun: "completed",
  restart_clean: "completed",
  cancel: "cancelled",
  adopt: "reconciled",
  mark_manual_intervention: "failed_manual_intervention",
} as const satisfies Record<Verb, WorkflowStatus>;

/** The facts about a row that decide the effect of a verb, including whether a verb repeats an earlier verb. */
export interface VerbTarget {
  readonly status: WorkflowStatus;
  /** True if the workflow was run at least once, so that it may have left effects outside the hub. */
  readonly ran: boolean;
  /** True if an earlier `adopt` on the row is in progress. */
  readonly adopting: boolean;
  /** True if an operator has stopped the row by `mark_manual_intervention`, so that only an operator's verb continues it. */
  readonly frozen: boolean;
  /** The cause of the row's compensation; null if the row is not compensating. */
  readonly undoing: "failure" | "cancel" | "restart" | null;
  /** True if a hub is running the row at this moment. */
  readonly leased: boolean;
  /** The recorded `cancel`, `restart_clean` or `mark_manual_intervention` that waits for the present run to end; null if there is none. */
  readonly requested: StopVerb | null;
}

const standingOf = (row: Pick<VerbTarget, "status" | "ran">): Standing =>
  row.status === "pending" && row.ran ? "pending_again" : row.status;

/** For each verb that stops a workflow, the facts that the verb changes in the workflow's row. */
const AFTER_STOP = {
  cancel: { status: "compensating", undoing: "cancel" },
  restart_clean: { status: "compensating", undoing: "restart" },
  mark_manual_intervention: { status: "failed_manual_intervention", frozen: true, undoing: null },
} as const satisfies Record<StopVerb, Partial<VerbTarget>>;

const isStop = (verb: Verb): verb is StopVerb => (STOP_VERBS as readonly Verb[]).includes(verb);

/**
 * Returns the effect of a verb on a workflow's row. The effect of a verb is also `already` while the row is carrying out the same verb. A row with a
 * recorded verb such as `cancel`, which stops the workflow, counts as stopped. A second verb that stops the workflow replaces the first such verb if
 * the table of verbs allows this.
 */
export function effectOf(verb: Verb, row: VerbTarget): Effect {
  const effect = ofTable(verb, row.requested === null ? row : { ...row, ...AFTER_STOP[row.requested] });
  const moves = effect !== "already" && effect !== "refused";
  if (!moves || (!row.leased && row.requested === null)) return effect;
  return isStop(verb) ? "at_commit" : "refused";
}

/**
 * Returns the effect of a verb such as `cancel`, which stops the workflow, at the end of the run for which the verb waited. `already` means that the
 * verb came too late, or that the workflow is already carrying the verb out.
 */
export function effectAtCommit(verb: StopVerb, left: VerbTarget): Effect {
  // If the run failed and the row began a compensation, `restart_clean` still applies, because the hub accepted the verb before the compensation
  // began.
  if (verb === "restart_clean" && left.undoing === "failure") return "undo_and_restart";
  const effect = ofTable(verb, left);
  return effect === "refused" ? "already" : effect;
}

function ofTable(verb: Verb, row: VerbTarget): Effect {
  const same =
    (verb === "restart_clean" && row.undoing === "restart") ||
    (verb === "cancel" && row.undoing === "cancel") ||
    (verb === "adopt" && row.adopting && row.status === "pending") ||
    (verb === "mark_manual_intervention" && row.frozen && row.status === "failed_manual_intervention");
  return same ? "already" : RECOVERY[verb][standingOf(row)];
}
