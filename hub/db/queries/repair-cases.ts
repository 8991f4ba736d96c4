import type { NodeId, RepairId, SiteId } from "../../../shared/ids.ts";
import { ENDED_STATES, type RepairMode, type RepairState } from "../../../shared/repair.ts";
import { and, desc, eq, inArray, isNull, type SQL, sql } from "../orm.ts";
import { type RepairCase, repairCases } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach, repairTenantFor } from "./reach.ts";

const isOpen = isNull(repairCases.endedAt);

/** `insertCase` returns null if the node already has an open repair case. */
export async function insertCase(tx: Tx, row: typeof repairCases.$inferInsert): Promise<RepairCase | null> {
  const [inserted] = await tx.insert(repairCases).values(row).onConflictDoNothing().returning();
  return inserted ?? null;
}

export async function readCase(db: Db | Tx, id: RepairId): Promise<RepairCase | null> {
  const [row] = await db.select().from(repairCases).where(eq(repairCases.id, id));
  return row ?? null;
}

/** To prevent deadlocks, a caller locks the node, and also the allocation if needed, before the node's repair case. */
export async function lockCase(tx: Tx, id: RepairId): Promise<RepairCase | null> {
  const [row] = await tx.select().from(repairCases).where(eq(repairCases.id, id)).for("update");
  return row ?? null;
}

export async function lockOpenCase(tx: Tx, nodeId: NodeId): Promise<RepairCase | null> {
  const [row] = await tx
    .select()
    .from(repairCases)
    .where(and(eq(repairCases.nodeId, nodeId), isOpen))
    .for("update");
  return row ?? null;
}

export type OpenRepair = Pick<RepairCase, "id" | "nodeId" | "mode" | "state">;

export async function openRepairsOf(db: Db | Tx, nodeIds: readonly NodeId[]): Promise<ReadonlyMap<NodeId, OpenRepair>> {
  if (nodeIds.length === 0) return new Map();
  const { id, nodeId, mode, state } = repairCases;
  const rows = await db
    .select({ id, nodeId, mode, state })
    .from(repairCases)
    .where(and(inArray(nodeId, [...nodeIds]), isOpen));
  return new Map(rows.map((row) => [row.nodeId, row]));
}

/** SQL for the ids of the nodes with an open repair case, which take no new tenant whatever their health overrides say (decision R1). */
export const nodesInRepair: SQL = sql`(select r.node_id from repair_cases r where r.ended_at is null)`;

export type CaseChange = Partial<
  Omit<typeof repairCases.$inferInsert, "id" | "nodeId" | "siteId" | "hostname" | "state" | "stateSince" | "openedAt">
> & {
  /**
   * Sets the repair case's `worked_until` or `validated_at` to the time of the transaction, so that a cleaning that begins in the same transaction
   * counts as begun after the repair work.
   */
  readonly now?: "workedUntil" | "validatedAt";
};

/** Changes a repair case that is still in the state `from`; returns null if the case is in another state by now. */
export async function changeCase(
  tx: Tx,
  id: RepairId,
  { from, to }: { readonly from: RepairState; readonly to: RepairState },
  { now, ...change }: CaseChange,
): Promise<RepairCase | null> {
  const isEnd = (ENDED_STATES as readonly RepairState[]).includes(to);
  const [row] = await tx
    .update(repairCases)
    .set({
      ...change,
      ...(now === undefined ? {} : { [now]: sql`now()` }),
      state: to,
      ...(from === to ? {} : { stateSince: sql`now()` }),
      ...(isEnd ? { endedAt: sql`now()` } : {}),
    })
    .where(and(eq(repairCases.id, id), eq(repairCases.state, from)))
    .returning();
  return row ?? null;
}

export interface CaseFilter {
  readonly nodeId?: NodeId | undefined;
  readonly siteId?: SiteId | undefined;
  readonly hostname?: string | undefined;
  readonly mode?: RepairMode | undefined;
  readonly state?: RepairState | undefined;
  readonly claimedBy?: string | undefined;
  /** True to list only the repair cases that have not ended, false to list only those that have. */
  readonly open?: boolean | undefined;
  readonly reach: Reach;
}

export async function listCases(
  db: Db,
  filter: CaseFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ row: RepairCase; at: string }[]> {
  const t = repairCases;
  const conditions: (SQL | undefined)[] = [
    filter.nodeId === undefined ? undefined : eq(t.nodeId, filter.nodeId),
    filter.siteId === undefined ? undefined : eq(t.siteId, filter.siteId),
    filter.hostname === undefined ? undefined : eq(t.hostname, filter.hostname),
    filter.mode === undefined ? undefined : eq(t.mode, filter.mode),
    filter.state === undefined ? undefined : eq(t.state, filter.state),
    filter.claimedBy === undefined ? undefined : eq(t.claimedBy, filter.claimedBy),
    filter.open === undefined ? undefined : sql`(${t.endedAt} is null) = ${filter.open}`,
    isWithin(filter.reach, { site: t.siteId, tenant: repairTenantFor(filter.reach.tenant) }),
    page.before === null
      ? undefined
      : sql`(${t.openedAt}, ${t.id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  return db
    .select({ row: t, at: sql<string>`${t.openedAt}::text` })
    .from(t)
    .where(and(...conditions))
    .orderBy(desc(t.openedAt), desc(t.id))
    .limit(page.limit);
}

/** Counts the site's nodes in service, and those whose full repair is requested or claimed. */
export async function countRequests(tx: Tx, siteId: SiteId): Promise<{ inService: number; underWay: NodeId[] }> {
  const rows = await tx
    .select({ nodeId: repairCases.nodeId })
    .from(repairCases)
    .where(
      and(
        eq(repairCases.siteId, siteId),
        eq(repairCases.mode, "full"),
        inArray(repairCases.state, ["requested", "claimed"]),
        isNull(repairCases.endedAt),
      ),
    );
  const counted = await tx.execute<{ nodes: number }>(
    sql`select count(*)::int as nodes from nodes n where n.site_id = ${siteId}::uuid and n.status in ('active', 'offline', 'quarantined', 'enrolling')`,
  );
  return { inService: counted.rows[0]?.nodes ?? 0, underWay: rows.map(({ nodeId }) => nodeId) };
}

/** Returns the digests of all evidence that led to repair attempts at the node, from the repair cases that are open or ended in the last `days`. */
export async function knownEvidence(tx: Tx, nodeId: NodeId, days: number): Promise<string[]> {
  const rows = await tx
    .select({ evidence: repairCases.evidence })
    .from(repairCases)
    .where(
      and(
        eq(repairCases.nodeId, nodeId),
        sql`(${repairCases.endedAt} is null or ${repairCases.endedAt} > now() - make_interval(days => ${days}))`,
      ),
    );
  return [...new Set(rows.flatMap(({ evidence }) => evidence))];
}

/** The reasons why the hub itself must change a repair case. */
export type DueWork = "node_gone" | "claim_over" | "access_over" | "tenant_gone";

/**
 * SQL for the reason why the hub must change the repair case `c`: its node was removed, its claim has expired, the claim's allocation ends without a
 * reported outcome, or the tenant of an online repair has given the machine up.
 */
const due = sql`case
  when not exists (select from nodes n where n.id = c.node_id and n.status <> 'deleted') then 'node_gone'
  when c.state = 'claimed' and c.claim_until <= now() then 'claim_over'
  when c.state = 'claimed' and c.access_allocation_id is not null
    and not exists (select from allocations a where a.id = c.access_allocation_id and a.status not in ('ending', 'ended')) then 'access_over'
  when c.mode = 'online' and not exists (select from allocations a where a.id = c.allocation_id and a.status not in ('ending', 'ended')) then 'tenant_gone'
  end`;

/** Returns the repair cases about which the hub must do something, the oldest first. */
export async function findDueCases(db: Db, limit: number): Promise<RepairId[]> {
  const { rows } = await db.execute<{ id: RepairId }>(
    sql`select c.id from ${repairCases} c where c.ended_at is null and (${due}) is not null order by c.state_since, c.id limit ${limit}`,
  );
  return rows.map(({ id }) => id);
}

/** `dueWorkOf` reads the reason again, because another hub may have changed the repair case since `findDueCases` returned it. */
export async function dueWorkOf(tx: Tx, id: RepairId): Promise<DueWork | null> {
  const { rows } = await tx.execute<{ work: DueWork | null }>(
    sql`select (${due}) as work from ${repairCases} c where c.id = ${id} and c.ended_at is null`,
  );
  return rows[0]?.work ?? null;
}
