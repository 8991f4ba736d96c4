import type { NodeId } from "../../../shared/ids.ts";
import type { ReadinessSource } from "../../../shared/readiness.ts";
import { and, eq, sql } from "../orm.ts";
import { readinessSignals } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** Stores a readiness signal, and returns false if the database already has a signal with the same id. */
export async function insertSignal(tx: Tx, signal: typeof readinessSignals.$inferInsert): Promise<boolean> {
  const fresh = await tx
    .insert(readinessSignals)
    .values(signal)
    .onConflictDoNothing()
    .returning({ id: readinessSignals.id });
  return fresh.length > 0;
}

/** If a host sends a readiness signal that the hub has deleted, the signal counts as new. */
export async function forgetOldSignals(tx: Tx, nodeId: NodeId, source: ReadinessSource, keep: number): Promise<void> {
  await tx.execute(sql`
    delete from ${readinessSignals} where node_id = ${nodeId} and source = ${source} and (received_at, id) <= (
      select s.received_at, s.id from ${readinessSignals} s where s.node_id = ${nodeId} and s.source = ${source}
      order by s.received_at desc, s.id desc offset ${keep} limit 1)`);
}

export async function removeSignals(tx: Tx, nodeId: NodeId): Promise<number> {
  const { rowCount } = await tx.execute(sql`delete from ${readinessSignals} where node_id = ${nodeId}`);
  return rowCount ?? 0;
}

export async function isSignalOf(tx: Tx, nodeId: NodeId, signalId: string): Promise<boolean> {
  const rows = await tx
    .select({ id: readinessSignals.id })
    .from(readinessSignals)
    .where(and(eq(readinessSignals.id, signalId), eq(readinessSignals.nodeId, nodeId)));
  return rows.length > 0;
}
