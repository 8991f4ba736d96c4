import type { NodeId } from "../../../shared/ids.ts";
import { and, eq, ne, sql } from "../orm.ts";
import { nodes, reportTokens } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** `findReportToken` returns null if no node has the report token, or if its node was deleted. */
export async function findReportToken(
  db: Db,
  tokenSha256: string,
): Promise<{ nodeId: NodeId; generation: number } | null> {
  const [found] = await db
    .select({ nodeId: reportTokens.nodeId, generation: reportTokens.generation })
    .from(reportTokens)
    .innerJoin(nodes, eq(nodes.id, reportTokens.nodeId))
    .where(and(eq(reportTokens.tokenSha256, tokenSha256), ne(nodes.status, "deleted")));
  return found ?? null;
}

/** Stores the report token of a node, and makes the node's previous report token invalid. */
export async function putReportToken(
  tx: Tx,
  token: { nodeId: NodeId; generation: number; tokenSha256: string },
): Promise<void> {
  const { nodeId: _of, ...set } = token;
  await tx
    .insert(reportTokens)
    .values(token)
    .onConflictDoUpdate({ target: reportTokens.nodeId, set: { ...set, createdAt: sql`now()` } });
}
