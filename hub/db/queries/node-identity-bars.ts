import type { NodeId } from "../../../shared/ids.ts";
import { and, eq, isNotNull, isNull, lt, sql } from "../orm.ts";
import { type NodeIdentityBar, nodeIdentityBars } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** `readIdentityBlock` returns the newest record that two hosts used the node's identity, even if the node has enrolled since then. */
export async function readIdentityBlock(db: Db | Tx, nodeId: NodeId): Promise<NodeIdentityBar | null> {
  const [block] = await db.select().from(nodeIdentityBars).where(eq(nodeIdentityBars.nodeId, nodeId));
  return block ?? null;
}

export type NewIdentityBlock = Omit<NodeIdentityBar, "barredAt" | "healedAt">;

export async function writeIdentityBlock(tx: Tx, block: NewIdentityBlock): Promise<void> {
  const blocked = { ...block, barredAt: sql`now()`, healedAt: null };
  await tx
    .insert(nodeIdentityBars)
    .values(blocked)
    .onConflictDoUpdate({ target: nodeIdentityBars.nodeId, set: blocked });
}

/**
 * Records that a node has enrolled in a newer generation after two hosts used its identity, so that the hub accepts the node's host.
 * `endIdentityBlock` returns null if the hub refuses no host because of the node's identity.
 */
export async function endIdentityBlock(tx: Tx, nodeId: NodeId, generation: number): Promise<NodeIdentityBar | null> {
  const [block] = await tx
    .update(nodeIdentityBars)
    .set({ healedAt: sql`now()` })
    .where(
      and(
        eq(nodeIdentityBars.nodeId, nodeId),
        isNull(nodeIdentityBars.healedAt),
        lt(nodeIdentityBars.generation, generation),
      ),
    )
    .returning();
  return block ?? null;
}

/**
 * True if two hosts with the node's identity caused its quarantine, and the node has enrolled since then. `endQuarantine` clears the mark
 * `quarantined`, which says that two hosts with one identity caused the quarantine.
 */
export async function endQuarantine(tx: Tx, nodeId: NodeId): Promise<boolean> {
  const ended = await tx
    .update(nodeIdentityBars)
    .set({ quarantined: false })
    .where(
      and(
        eq(nodeIdentityBars.nodeId, nodeId),
        eq(nodeIdentityBars.quarantined, true),
        isNotNull(nodeIdentityBars.healedAt),
      ),
    )
    .returning({ nodeId: nodeIdentityBars.nodeId });
  return ended.length > 0;
}

/**
 * Clears the mark that two hosts with one identity caused the node's quarantine, because a person has set or lifted the quarantine. Once
 * `disownQuarantine` has cleared the mark `quarantined`, a new enrollment of the node no longer ends the node's quarantine.
 */
export async function disownQuarantine(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.update(nodeIdentityBars).set({ quarantined: false }).where(eq(nodeIdentityBars.nodeId, nodeId));
}
