import { STOP_VERBS, type StopVerb, WORKFLOW_STATUSES, type WorkflowStatus } from "../../../shared/workflow-status.ts";

/** Operator verbs of lifecycle 4.9 and decision W1. */
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
 * What a verb does in a status. `already`: the row is already as the verb would make it, so a repeated request gets the same answer and changes
 * nothing. `refused`: 409.
 */
export type Effect =
  | "already"
  | "refused"
  /** Runs the current stage again, with new attempts and a new deadline. */
  | "retry_stage"
  /** Continues from the last safe stage. */
  | "resume_from_checkpoint"
  /** Runs from the first stage; stages adopt effects that already exist. */
  | "rerun_from_top"
  /** Undoes everything, forgets the facts and begins again. */
  | "undo_and_restart"
  | "cancel_now"
  /** A hub works on the row: the verb takes effect when that run ends, so that nothing outside is undone while it may still be done. */
  | "at_commit"
  | "undo_and_cancel"
  /** A compensation under way ends as cancelled. */
  | "end_as_cancelled"
  /** The current stage observes again and adopts what it finds; the workflow ends as `reconciled`. */
  | "adopt_observed"
  /** From now on only a person's verb moves the row; a row that is already frozen stays as it is. */
  | "freeze";

/** The row's status for the table. A pending row that has run before is separate: it may have acted outside, unlike one that never ran. */
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

/** The status with which the workflow is to end after the verb: the audit calls this the expected target (lifecycle 4.12). */
export const ENDS_AS = {
  retry: "completed",
  resume: "completed",
  rerun: "completed",
  restart_clean: "completed",
  cancel: "cancelled",
  adopt: "reconciled",
  mark_manual_intervention: "failed_manual_intervention",
} as const satisfies Record<Verb, WorkflowStatus>;

/** What the table needs to know of a row, beside its status, to recognize a repeated request. */
export interface VerbTarget {
  readonly status: WorkflowStatus;
  /** The row was run at least once, so it may have left effects outside. */
  readonly ran: boolean;
  /** The row already adopts what it finds. */
  readonly adopting: boolean;
  /** A person has said that only a person may move the row. */
  readonly frozen: boolean;
  /** Why the row is being compensated; null if it is not. */
  readonly undoing: "failure" | "cancel" | "restart" | null;
  /** A hub works on the row at this moment. */
  readonly leased: boolean;
  /** The verb that waits for that run to end. */
  readonly requested: StopVerb | null;
}

const standingOf = (row: Pick<VerbTarget, "status" | "ran">): Standing =>
  row.status === "pending" && row.ran ? "pending_again" : row.status;

/** The row's status, as far as the table needs it, after the verb that it waits for. */
const AFTER_STOP = {
  cancel: { status: "compensating", undoing: "cancel" },
  restart_clean: { status: "compensating", undoing: "restart" },
  mark_manual_intervention: { status: "failed_manual_intervention", frozen: true, undoing: null },
} as const satisfies Record<StopVerb, Partial<VerbTarget>>;

const isStop = (verb: Verb): verb is StopVerb => (STOP_VERBS as readonly Verb[]).includes(verb);

/**
 * The effect from the table; `already` also if the row is carrying out the same verb at this moment. A row that waits for a stop is judged as if it were
 * stopped already, so the later of two stops holds if the table allows it.
 */
export function effectOf(verb: Verb, row: VerbTarget): Effect {
  const effect = ofTable(verb, row.requested === null ? row : { ...row, ...AFTER_STOP[row.requested] });
  const moves = effect !== "already" && effect !== "refused";
  if (!moves || (!row.leased && row.requested === null)) return effect;
  return isStop(verb) ? "at_commit" : "refused";
}

/** What a verb that waited for a run does to the row after the run; `already` if it came too late or is under way. */
export function effectAtCommit(verb: StopVerb, left: VerbTarget): Effect {
  // This run began a compensation after a failure: that is no reason to refuse the verb, which was accepted before.
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
