import type { NodeId, RepairId } from "../../../shared/ids.ts";
import { and, asc, count, eq, sql } from "../orm.ts";
import { type RepairEventRow, repairEvents } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export type NewRepairEvent = Omit<typeof repairEvents.$inferInsert, "id" | "occurredAt">;

export async function addRepairEvent(tx: Tx, event: NewRepairEvent): Promise<void> {
  await tx.insert(repairEvents).values(event);
}

/** Returns the timeline of a repair case, the oldest entry first. */
export const listRepairEvents = (db: Db | Tx, id: RepairId): Promise<RepairEventRow[]> =>
  db.select().from(repairEvents).where(eq(repairEvents.repairId, id)).orderBy(asc(repairEvents.id));

export async function countRepairEvents(tx: Tx, id: RepairId): Promise<number> {
  const [row] = await tx.select({ entries: count() }).from(repairEvents).where(eq(repairEvents.repairId, id));
  return row?.entries ?? 0;
}

/** Returns the time at which the present attempt of a repair case was claimed; null for a repair case without an attempt. */
export async function attemptBegan(
  tx: Tx,
  { id, attempt }: { readonly id: RepairId; readonly attempt: number },
): Promise<Date | null> {
  const [row] = await tx
    .select({ at: repairEvents.occurredAt })
    .from(repairEvents)
    .where(and(eq(repairEvents.repairId, id), eq(repairEvents.type, "claimed"), eq(repairEvents.attempt, attempt)));
  return row?.at ?? null;
}

/** Counts the repair claims of the node in the last `days`, over all its repair cases. */
export async function countAttempts(tx: Tx, nodeId: NodeId, days: number): Promise<number> {
  const [row] = await tx
    .select({ attempts: count() })
    .from(repairEvents)
    .where(
      and(
        eq(repairEvents.nodeId, nodeId),
        eq(repairEvents.type, "claimed"),
        sql`${repairEvents.occurredAt} > now() - make_interval(days => ${days})`,
      ),
    );
  return row?.attempts ?? 0;
}
