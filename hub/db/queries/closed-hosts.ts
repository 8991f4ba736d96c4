import type { NodeId } from "../../../shared/ids.ts";
import { and, desc, eq, gt, inArray, or, sql } from "../orm.ts";
import { tasks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isPlan } from "./tasks.ts";

/**
 * Returns those of `nodeIds` whose hosts may keep users from logging in. A host may keep users out if the hub offered its agent a drain task or
 * somebody requested an undrain, and no undrain succeeded since. A cancelled or failed undrain does not prove that users can log in, so `closedHosts`
 * includes the undrain's host.
 */
export async function closedHosts(db: Db | Tx, nodeIds: readonly NodeId[]): Promise<ReadonlySet<NodeId>> {
  if (nodeIds.length === 0) return new Set();
  const newest = await db
    .selectDistinctOn([tasks.nodeId], { nodeId: tasks.nodeId, type: tasks.type, state: tasks.state })
    .from(tasks)
    .where(
      and(
        inArray(tasks.nodeId, [...nodeIds]),
        sql`not ${isPlan()}`,
        or(eq(tasks.type, "node.undrain"), and(eq(tasks.type, "node.drain"), gt(tasks.attempts, 0))),
      ),
    )
    .orderBy(tasks.nodeId, desc(tasks.createdAt), desc(tasks.id));
  return new Set(
    newest.flatMap(({ nodeId, type, state }) => (type === "node.undrain" && state === "succeeded" ? [] : [nodeId])),
  );
}

export async function hasWaitingUndrain(tx: Tx, nodeId: NodeId): Promise<boolean> {
  const rows = await tx
    .select({ id: tasks.id })
    .from(tasks)
    .where(
      and(
        eq(tasks.nodeId, nodeId),
        eq(tasks.type, "node.undrain"),
        sql`not ${isPlan()}`,
        inArray(tasks.state, ["queued", "offered", "running"]),
      ),
    )
    .limit(1);
  return rows.length > 0;
}
