import { WORKFLOW_STATUSES, type WorkflowStatus } from "../../../shared/workflow-status.ts";

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
  /** Takes effect when the run under way commits. */
  | "request_cancel"
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
      running: "request_cancel",
      compensating: "end_as_cancelled",
      failed: "undo_and_cancel",
    }),
    cancelled: "already",
  },
  adopt: { ...live({ running: "already", again: "adopt_observed", failed: "adopt_observed" }), reconciled: "already" },
  mark_manual_intervention: live({ running: "freeze", compensating: "freeze", failed: "freeze" }),
} as const satisfies Record<Verb, Row>;

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
}

const standingOf = (row: Pick<VerbTarget, "status" | "ran">): Standing =>
  row.status === "pending" && row.ran ? "pending_again" : row.status;

/** The table's effect; `already` also where the same verb is what the row is about just now. */
export function effectOf(verb: Verb, row: VerbTarget): Effect {
  const same =
    (verb === "restart_clean" && row.undoing === "restart") ||
    (verb === "cancel" && row.undoing === "cancel") ||
    (verb === "adopt" && row.adopting && row.status === "pending") ||
    (verb === "mark_manual_intervention" && row.frozen && row.status === "failed_manual_intervention");
  return same ? "already" : RECOVERY[verb][standingOf(row)];
}
