import { and, inArray, sql } from "../orm.ts";
import { workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export const WORKFLOW_CHANNEL = "muster_workflows";

/** Keys that a stage may wait on; who makes one true calls `wakeWorkflows` with it in the same transaction. */
export const waitKey = {
  machine: (siteId: string, systemId: string) => `maas:${siteId}/${systemId}`,
  node: (nodeId: string) => `node:${nodeId}`,
  task: (taskId: string) => `task:${taskId}`,
} as const;

/**
 * Makes due at once whatever waits on any of the keys, in one statement however many there are, which locks rows in the order of their ids. Only a
 * hint: a lost one costs the rest of the stage's own wait, nothing else.
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
