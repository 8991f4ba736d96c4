import type { NodeId } from "../../../shared/ids.ts";
import { and, eq, isNotNull, isNull, lt, sql } from "../orm.ts";
import { type NodeIdentityBar, nodeIdentityBars } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** The node's last bar, healed or not. */
export async function readBar(db: Db | Tx, nodeId: NodeId): Promise<NodeIdentityBar | null> {
  const [bar] = await db.select().from(nodeIdentityBars).where(eq(nodeIdentityBars.nodeId, nodeId));
  return bar ?? null;
}

export type NewBar = Omit<NodeIdentityBar, "barredAt" | "healedAt">;

export async function keepBar(tx: Tx, bar: NewBar): Promise<void> {
  const barred = { ...bar, barredAt: sql`now()`, healedAt: null };
  await tx.insert(nodeIdentityBars).values(barred).onConflictDoUpdate({ target: nodeIdentityBars.nodeId, set: barred });
}

/** The bar that an enrollment in this generation ends; null when there is none. */
export async function healBar(tx: Tx, nodeId: NodeId, generation: number): Promise<NodeIdentityBar | null> {
  const [bar] = await tx
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
  return bar ?? null;
}

/** True when the node's bar is healed and its quarantine was the bar's; from then on it is not. */
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

/** The quarantine is a person's from now on, or over by a person's word: the bar lifts nothing any more. */
export async function disownQuarantine(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.update(nodeIdentityBars).set({ quarantined: false }).where(eq(nodeIdentityBars.nodeId, nodeId));
}
