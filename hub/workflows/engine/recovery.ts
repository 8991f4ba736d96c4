import { STOP_VERBS, type StopVerb, WORKFLOW_STATUSES, type WorkflowStatus } from "../../../shared/workflow-status.ts";

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
 * The effect `already` means that the workflow is already in the state that the verb asks for, so a repeated request changes nothing. The effect
 * `refused` means that the API answers an operator's verb with 409.
 */
export type Effect =
  | "already"
  | "refused"
  /** By the effect `retry_stage`, the workflow runs its current stage with new attempts and a new deadline. */
  | "retry_stage"
  /** By the effect `resume_from_checkpoint`, the workflow continues from the stage that its workflow kind names for `resume`. */
  | "resume_from_checkpoint"
  /** By the effect `rerun_from_top`, the workflow runs from its first stage, and its stages adopt effects that already exist. */
  | "rerun_from_top"
  /** By the effect `undo_and_restart`, the workflow undoes all its effects, forgets its facts and begins at its first stage. */
  | "undo_and_restart"
  | "cancel_now"
  /**
   * The effect `at_commit` means that the verb waits for the end of the stage's run, because the run may just be acting outside the hub, for example
   * in MAAS.
   */
  | "at_commit"
  | "undo_and_cancel"
  /** If an operator cancels a workflow during its compensation, the compensation continues, and the workflow ends as `cancelled`. */
  | "end_as_cancelled"
  /** By the verb `adopt`, the current stage observes and adopts the effects that it finds; the workflow later ends as `reconciled`. */
  | "adopt_observed"
  /** By the effect `freeze`, the workflow stops until an operator continues the workflow with another verb. */
  | "freeze";

/** In the table of verbs, `pending_again` means a pending workflow that has run before, and so may have acted outside the hub. */
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

/** The status in which a workflow should end after each verb, which the audit log records as the verb's expected result (lifecycle 4.12). */
export const ENDS_AS = {
  retry: "completed",
  resume: "completed",
  rerun: "completed",
  restart_clean: "completed",
  cancel: "cancelled",
  adopt: "reconciled",
  mark_manual_intervention: "failed_manual_intervention",
} as const satisfies Record<Verb, WorkflowStatus>;

export interface VerbTarget {
  readonly status: WorkflowStatus;
  /** True if a hub has run the workflow at least once, so that the workflow may have left effects outside the hub. */
  readonly ran: boolean;
  /** True if an earlier verb `adopt` for the workflow is in progress. */
  readonly adopting: boolean;
  /** True if an operator has stopped the workflow by `mark_manual_intervention`, so that only another verb continues the workflow. */
  readonly frozen: boolean;
  readonly undoing: "failure" | "cancel" | "restart" | null;
  readonly leased: boolean;
  /** The recorded verb, such as `cancel`, that waits for the present run to end; null if no verb waits. */
  readonly requested: StopVerb | null;
}

const standingOf = (row: Pick<VerbTarget, "status" | "ran">): Standing =>
  row.status === "pending" && row.ran ? "pending_again" : row.status;

const AFTER_STOP = {
  cancel: { status: "compensating", undoing: "cancel" },
  restart_clean: { status: "compensating", undoing: "restart" },
  mark_manual_intervention: { status: "failed_manual_intervention", frozen: true, undoing: null },
} as const satisfies Record<StopVerb, Partial<VerbTarget>>;

const isStop = (verb: Verb): verb is StopVerb => (STOP_VERBS as readonly Verb[]).includes(verb);

/**
 * While the workflow is carrying a verb out, a second request for the verb has the effect `already`. For the effect of a second verb, a workflow with
 * a recorded verb such as `cancel` counts as stopped. A second verb that stops the workflow replaces the first verb if the table of verbs allows the
 * replacement.
 */
export function effectOf(verb: Verb, row: VerbTarget): Effect {
  const effect = ofTable(verb, row.requested === null ? row : { ...row, ...AFTER_STOP[row.requested] });
  const moves = effect !== "already" && effect !== "refused";
  if (!moves || (!row.leased && row.requested === null)) return effect;
  return isStop(verb) ? "at_commit" : "refused";
}

/**
 * Returns the effect that a recorded verb, such as `cancel`, has when the run of the workflow's stage has ended. The effect `already` means that the
 * verb came too late, or that the workflow is already carrying the verb out.
 */
export function effectAtCommit(verb: StopVerb, left: VerbTarget): Effect {
  // If the run failed and the workflow began a compensation, `restart_clean` still applies, because the hub accepted the verb before the failure.
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
