import type { NodeId } from "../../../shared/ids.ts";
import { and, eq, isNotNull, isNull, lt, sql } from "../orm.ts";
import { type NodeIdentityBar, nodeIdentityBars } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** The node's last identity bar, i.e. the last finding that two hosts used the node's identity, whether it has ended or not. */
export async function readBar(db: Db | Tx, nodeId: NodeId): Promise<NodeIdentityBar | null> {
  const [bar] = await db.select().from(nodeIdentityBars).where(eq(nodeIdentityBars.nodeId, nodeId));
  return bar ?? null;
}

export type NewBar = Omit<NodeIdentityBar, "barredAt" | "healedAt">;

export async function keepBar(tx: Tx, bar: NewBar): Promise<void> {
  const barred = { ...bar, barredAt: sql`now()`, healedAt: null };
  await tx.insert(nodeIdentityBars).values(barred).onConflictDoUpdate({ target: nodeIdentityBars.nodeId, set: barred });
}

/**
 * Ends the node's identity bar, which shut out two hosts that used one identity, after an enrollment in a newer generation. `healBar` is null if
 * there was no identity bar to end.
 */
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

/**
 * True if the node's identity bar, which shut out two hosts that used one identity, has ended and had caused the node's quarantine. `endQuarantine`
 * also clears the mark `quarantined`, which says that two hosts with one identity caused the node's quarantine.
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
 * Clears the mark that two hosts with one identity caused the node's quarantine, because a person has set or lifted the quarantine. Without the mark
 * `quarantined`, a new enrollment of the node ends its identity bar but not its quarantine.
 */
export async function disownQuarantine(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.update(nodeIdentityBars).set({ quarantined: false }).where(eq(nodeIdentityBars.nodeId, nodeId));
}
