/**
 * Tells the hub's observers (log, metrics, traces) what a transaction has changed, and only after the transaction has committed. A stage or a query
 * notes its change with `noteChange` in the transaction that writes the change. A transaction that rolls back tells nothing.
 */
import type { EventType } from "../../shared/events.ts";
import type { FailureClass } from "../../shared/failures.ts";
import type { NodeId, SiteId, WorkflowId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { StageEventStatus, WorkflowStatus } from "../../shared/workflow-status.ts";

export interface NodeMoved {
  readonly what: "node_moved";
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly siteId: SiteId | null;
  readonly from: NodeStatus;
  readonly to: NodeStatus;
  readonly owner: string;
  readonly reason: string;
}

interface OfWorkflow {
  readonly workflowId: WorkflowId;
  readonly kind: string;
  readonly siteId: SiteId | null;
  /** What the workflow's input says about its host: the hostname of an onboarding, or the node of a decommission. */
  readonly host: { readonly hostname?: string | undefined; readonly node_id?: string | undefined };
}

/** The change that ended an attempt of a workflow's stage, or ended the stage. */
export interface StageEnded extends OfWorkflow {
  readonly what: "stage_ended";
  readonly stage: string;
  readonly attempt: number;
  readonly outcome: Exclude<StageEventStatus, "started" | "waiting">;
  readonly reason: string;
  readonly failure: { readonly class: FailureClass; readonly code: string } | null;
  /** The stage at which the workflow continues; its present stage if it repeats that stage or has ended. */
  readonly nextStage: string;
  readonly status: WorkflowStatus;
  /** The database's time when the workflow entered the stage (null if the caller does not know it), and when the attempt at the stage ended. */
  readonly enteredAt: Date | null;
  readonly endedAt: Date;
  /** True if the stage's own run ended the attempt; false if an operator's verb, such as retry, ended it. */
  readonly byRun: boolean;
}

export interface WorkflowEnded extends OfWorkflow {
  readonly what: "workflow_ended";
  readonly status: WorkflowStatus;
  readonly requestedAt: Date;
  readonly endedAt: Date;
  readonly failure: { readonly class: FailureClass; readonly code: string } | null;
}

/** A domain event was written. Its data hold no secret. */
export interface EventWritten {
  readonly what: "event";
  readonly type: EventType;
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export type Change = NodeMoved | StageEnded | WorkflowEnded | EventWritten;

/** The client of the admin API that asked for the transaction's changes; null for a transaction of the hub's own. */
export interface Asker {
  readonly name: string;
  readonly requestId: string;
}

export type OnCommitted = (changes: readonly Change[], asker: Asker | null) => void;

/**
 * A transaction of `inTx` whose changes the hub collects for the observers. `Transaction` is only `object`, because the real type `Tx` is in a file
 * that imports this file.
 */
type Transaction = object;

interface Noted {
  readonly changes: Change[];
  asker: Asker | null;
}
const noted = new WeakMap<Transaction, Noted>();

/** Begins to collect the changes of a transaction that `noteChange` reports. Without `keepChanges`, `noteChange` does nothing. */
export function keepChanges(tx: Transaction): void {
  noted.set(tx, { changes: [], asker: null });
}

export function noteChange(tx: Transaction, change: Change): void {
  noted.get(tx)?.changes.push(change);
}

export function noteAsker(tx: Transaction, asker: Asker): void {
  const kept = noted.get(tx);
  if (kept !== undefined) kept.asker = asker;
}

/** Returns a function that forgets all changes since the call of `markChanges`, for a rollback to a savepoint. */
export function markChanges(tx: Transaction): () => void {
  const kept = noted.get(tx);
  const length = kept?.changes.length ?? 0;
  return () => void kept?.changes.splice(length);
}

/** Passes the transaction's collected changes to the observer, at most once. */
export function tellChanges(tx: Transaction, onCommitted: OnCommitted): void {
  const kept = noted.get(tx);
  noted.delete(tx);
  if (kept !== undefined && kept.changes.length > 0) onCommitted(kept.changes, kept.asker);
}
