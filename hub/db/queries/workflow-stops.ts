import type { WorkflowId } from "../../../shared/ids.ts";
import { and, eq, inArray, or, sql } from "../orm.ts";
import { nodeDecommissions, type Workflow, workflows } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { WORKFLOW_CHANNEL } from "./workflow-wakes.ts";
import { NO_STOP, type StopRequest } from "./workflows.ts";

export async function makeDue(tx: Tx, id: WorkflowId): Promise<void> {
  await tx.update(workflows).set({ wakeAt: sql`now()` }).where(eq(workflows.id, id));
}

/** Notifies the hubs, when the transaction commits, that a workflow's row is due. */
export async function tellRunners(tx: Tx): Promise<void> {
  await tx.execute(sql`select pg_notify(${WORKFLOW_CHANNEL}, '')`);
}

/**
 * Records an operator's verb, such as `cancel`, for a workflow that a hub runs, and makes the workflow due at once. The operator's verb, such as
 * `cancel`, takes effect when the hub that runs the workflow has given up its lease of the workflow's row, or has died.
 */
export async function requestStop(tx: Tx, id: WorkflowId, stopRequest: StopRequest): Promise<void> {
  await tx
    .update(workflows)
    .set({ stopRequest, cancelRequestedAt: null, wakeAt: sql`now()` })
    .where(eq(workflows.id, id));
}

/**
 * Records the verb `mark_manual_intervention` for each operation under way that may clean, release or remove a host: for each decommission, and for
 * each workflow that undoes what it did. An operation with the verb `mark_manual_intervention` does nothing more until a person continues it.
 * `stopDestructive` returns the number of operations.
 */
export async function stopDestructive(tx: Tx, because: string): Promise<number> {
  const stopRequest: StopRequest = { verb: "mark_manual_intervention", because };
  const cleans = sql`exists (select 1 from ${nodeDecommissions} d where d.decommission_id = ${workflows.id})`;
  const stopped = await tx
    .update(workflows)
    .set({ stopRequest, cancelRequestedAt: null, wakeAt: sql`now()` })
    .where(or(eq(workflows.status, "compensating"), and(inArray(workflows.status, ["pending", "running"]), cleans)))
    .returning({ id: workflows.id });
  return stopped.length;
}

export async function forgetStop(tx: Tx, id: WorkflowId): Promise<void> {
  await tx.update(workflows).set(NO_STOP).where(eq(workflows.id, id));
}

/** Raises a workflow's fence, so that the hub that works on the workflow can write no result of its run. */
export async function takeFromRunner(tx: Tx, { id, fence }: Pick<Workflow, "id" | "fence">): Promise<number> {
  await tx
    .update(workflows)
    .set({ fence: fence + 1, ...NO_STOP })
    .where(and(eq(workflows.id, id), eq(workflows.fence, fence)));
  return fence + 1;
}

/** Marks that a workflow's stage may have run before, so that the stage's next run observes before it acts. */
export async function markStageRun(tx: Tx, id: WorkflowId): Promise<void> {
  await tx.update(workflows).set({ stageRuns: 1 }).where(eq(workflows.id, id));
}
