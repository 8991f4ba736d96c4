import type { NodeId } from "../../../shared/ids.ts";
import { eq } from "../orm.ts";
import { type Node, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function readNode(db: Db | Tx, nodeId: NodeId): Promise<Node | null> {
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  return node ?? null;
}

/** Holds the record until the end of the transaction, so that its generation and status cannot change under a decision. */
export async function lockNode(tx: Tx, nodeId: NodeId): Promise<Node | null> {
  const [node] = await tx.select().from(nodes).where(eq(nodes.id, nodeId)).for("no key update");
  return node ?? null;
}
