import type { TaskId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, inArray, sql } from "../orm.ts";
import { tasks, workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { recordProgressEvent, TELL_EVERY_SECONDS } from "./operation-progress.ts";

export const WORKFLOW_CHANNEL = "muster_workflows";

/**
 * A wait key names a machine, node or task for whose change a workflow's stage may wait. Code that changes a machine, node or task calls
 * `wakeWorkflows` with the wait key of that object in the same transaction.
 */
export const waitKey = {
  machine: (siteId: string, systemId: string) => `maas:${siteId}/${systemId}`,
  node: (nodeId: string) => `node:${nodeId}`,
  task: (taskId: string) => `task:${taskId}`,
} as const;

/** Makes a running workflow due at once, together with all workflows that wait for the same machine, node or task. */
export async function wakeRunning(tx: Tx, id: WorkflowId): Promise<void> {
  const [row] = await tx
    .update(workflows)
    .set({ wakeAt: sql`now()` })
    .where(and(eq(workflows.id, id), eq(workflows.status, "running")))
    .returning({ waitOn: workflows.waitOn });
  if (row?.waitOn != null) await wakeWorkflows(tx, [row.waitOn]);
}

/**
 * Makes every workflow due that waits on one of the wait keys. To prevent deadlocks, `wakeWorkflows` locks the workflows' rows in the order of their
 * ids. A wake-up of a workflow is only a hint: if it is lost, the workflow's stage runs when the stage's own wait ends.
 */
export async function wakeWorkflows(db: Db | Tx, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  const waiting = db
    .select({ id: workflows.id })
    .from(workflows)
    .where(
      and(
        sql`${workflows.waitOn} = any(${sql.param([...keys])}::text[])`,
        inArray(workflows.status, ["running", "compensating"]),
        sql`${workflows.wakeAt} > now()`,
      ),
    )
    .orderBy(workflows.id)
    .for("update");
  const woken = await db
    .update(workflows)
    .set({ wakeAt: sql`now()` })
    .where(inArray(workflows.id, waiting))
    .returning({ id: workflows.id });
  if (woken.length > 0) await db.execute(sql`select pg_notify(${WORKFLOW_CHANNEL}, '')`);
}

/**
 * Writes an event about the operation of a task whose agent has reported progress. If another transaction has locked the operation's row, the report
 * of progress writes no event, so that no two transactions wait for each other.
 */
export async function tellTaskProgress(tx: Tx, id: TaskId): Promise<void> {
  const due = sql`array(select w.id from ${workflows} w join ${tasks} t on t.workflow_id = w.id
    where t.id = ${id} and w.status in ('running', 'compensating')
      and (w.told_at is null or w.told_at < now() - make_interval(secs => ${TELL_EVERY_SECONDS}))
    for update of w skip locked)`;
  const [row] = await tx
    .update(workflows)
    .set({ toldAt: sql`now()` })
    .where(sql`${workflows.id} = any(${due})`)
    .returning();
  if (row !== undefined) await recordProgressEvent(tx, row);
}
