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
 * What a verb does in a status. `already`: the row is what the verb would make of it, so a double click answers the same and changes
 * nothing. `refused`: 409.
 */
export type Effect =
  | "already"
  | "refused"
  /** The current stage again, with fresh attempts and deadline. */
  | "retry_stage"
  /** On from the last safe stage. */
  | "resume_from_checkpoint"
  /** From the top; stages adopt what is already there. */
  | "rerun_from_top"
  /** Undo, forget, and begin again. */
  | "undo_and_restart"
  | "cancel_now"
  /** A hub works on the row: takes effect when that run ends, so that nothing outside is undone while it may still be done. */
  | "at_commit"
  | "undo_and_cancel"
  /** A compensation under way ends as cancelled. */
  | "end_as_cancelled"
  /** The current stage looks again and takes what it finds; the end is `reconciled`. */
  | "adopt_observed"
  /** Nothing but a person's verb moves the row any more; a row that is frozen stays as it is. */
  | "freeze";

/** How a row stands for the table: a pending one that has run before may have acted outside, unlike one that never did. */
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

/** What the workflow is to end as once the verb has done its work: what the audit calls the expected target (lifecycle 4.12). */
export const ENDS_AS = {
  retry: "completed",
  resume: "completed",
  rerun: "completed",
  restart_clean: "completed",
  cancel: "cancelled",
  adopt: "reconciled",
  mark_manual_intervention: "failed_manual_intervention",
} as const satisfies Record<Verb, WorkflowStatus>;

/** What the table needs of a row beside its status to know a double click when it sees one. */
export interface VerbTarget {
  readonly status: WorkflowStatus;
  /** It was worked on at least once, so that something of it may be there outside. */
  readonly ran: boolean;
  /** It takes what it finds already. */
  readonly adopting: boolean;
  /** A person said that nothing may move it but a person. */
  readonly frozen: boolean;
  /** Why it is being undone; null while it is not. */
  readonly undoing: "failure" | "cancel" | "restart" | null;
  /** A hub works on it just now. */
  readonly leased: boolean;
  /** The verb that waits for that run to end. */
  readonly requested: StopVerb | null;
}

const standingOf = (row: Pick<VerbTarget, "status" | "ran">): Standing =>
  row.status === "pending" && row.ran ? "pending_again" : row.status;

/** What the row will be once the verb that it waits for has been carried out, as far as the table asks. */
const AFTER_STOP = {
  cancel: { status: "compensating", undoing: "cancel" },
  restart_clean: { status: "compensating", undoing: "restart" },
  mark_manual_intervention: { status: "failed_manual_intervention", frozen: true, undoing: null },
} as const satisfies Record<StopVerb, Partial<VerbTarget>>;

const isStop = (verb: Verb): verb is StopVerb => (STOP_VERBS as readonly Verb[]).includes(verb);

/**
 * The table's effect; `already` also where the same verb is what the row is about just now. A row that waits to be stopped is judged as if it had
 * been, so the later of two stops holds where the table allows it.
 */
export function effectOf(verb: Verb, row: VerbTarget): Effect {
  const effect = ofTable(verb, row.requested === null ? row : { ...row, ...AFTER_STOP[row.requested] });
  const moves = effect !== "already" && effect !== "refused";
  if (!moves || (!row.leased && row.requested === null)) return effect;
  return isStop(verb) ? "at_commit" : "refused";
}

/** What the verb that waited for a run does to what the run left; `already` where it came too late or is under way. */
export function effectAtCommit(verb: StopVerb, left: VerbTarget): Effect {
  // Undoing after a failure began in this run: it is no reason to refuse what was accepted before.
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
