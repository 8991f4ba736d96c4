import type { AllocationStatus } from "../../../shared/allocation-status.ts";
import type { AllocationId, NodeId, SiteId, SshKeyGroupId, SshKeyId } from "../../../shared/ids.ts";
import { and, asc, desc, eq, inArray, isNotNull, ne, type SQL, sql } from "../orm.ts";
import { type AllocationRow, allocations, type Node, sshKeyGroups } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { isVersion, readVersion } from "./row-versions.ts";

export type NewAllocation = Omit<
  typeof allocations.$inferInsert,
  | "status"
  | "createdAt"
  | "activeAt"
  | "endedAt"
  | "endReason"
  | "endForced"
  | "errorCode"
  | "errorMessage"
  | "problem"
  | "decommissionId"
  | "keysDue"
  | "keysTaskId"
>;

/** `insertAllocation` returns null if the node already has an open allocation. */
export async function insertAllocation(tx: Tx, allocation: NewAllocation): Promise<AllocationRow | null> {
  const [row] = await tx
    .insert(allocations)
    .values({ ...allocation, status: "granting" })
    .onConflictDoNothing({ target: allocations.nodeId, where: ne(allocations.status, sql`'ended'`) })
    .returning();
  return row ?? null;
}

export async function readAllocation(db: Db | Tx, id: AllocationId): Promise<AllocationRow | null> {
  const [row] = await db.select().from(allocations).where(eq(allocations.id, id));
  return row ?? null;
}

/** Reads several allocations, sorted by the hostnames of their nodes. */
export const readAllocations = (db: Db | Tx, ids: readonly AllocationId[]): Promise<AllocationRow[]> =>
  db
    .select()
    .from(allocations)
    .where(inArray(allocations.id, [...ids]))
    .orderBy(allocations.hostname);

export const readAllocationVersion = (db: Db | Tx, id: AllocationId): Promise<string | null> =>
  readVersion(db, allocations, eq(allocations.id, id));

/** Replaces an allocation's labels if the allocation still has the version that the caller saw; returns null if the row has changed since. */
export async function setAllocationLabels(
  tx: Tx,
  id: AllocationId,
  labels: AllocationRow["labels"],
  version: string,
): Promise<AllocationRow | null> {
  const [row] = await tx
    .update(allocations)
    .set({ labels })
    .where(and(eq(allocations.id, id), isVersion(version)))
    .returning();
  return row ?? null;
}

/** To prevent deadlocks, a caller that locks both a node and its allocation locks the node first. */
export async function lockAllocation(tx: Tx, id: AllocationId): Promise<AllocationRow | null> {
  const [row] = await tx.select().from(allocations).where(eq(allocations.id, id)).for("update");
  return row ?? null;
}

export async function lockOpenAllocation(tx: Tx, nodeId: NodeId): Promise<AllocationRow | null> {
  const [row] = await tx
    .select()
    .from(allocations)
    .where(and(eq(allocations.nodeId, nodeId), ne(allocations.status, "ended")))
    .for("update");
  return row ?? null;
}

/** Locks the open allocations of the given nodes, in the order of the allocations' ids. */
export async function lockOpenAllocations(
  tx: Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, AllocationRow>> {
  const rows = await tx
    .select()
    .from(allocations)
    .where(and(inArray(allocations.nodeId, [...nodeIds]), ne(allocations.status, "ended")))
    .orderBy(asc(allocations.id))
    .for("update");
  return new Map(rows.map((row) => [row.nodeId, row]));
}

export type OpenAllocation = Pick<AllocationRow, "id" | "nodeId" | "tenant" | "status">;

export async function openAllocationsOf(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, OpenAllocation>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .select({
      id: allocations.id,
      nodeId: allocations.nodeId,
      tenant: allocations.tenant,
      status: allocations.status,
    })
    .from(allocations)
    .where(and(inArray(allocations.nodeId, [...nodeIds]), ne(allocations.status, "ended")));
  return new Map(rows.map((row) => [row.nodeId, row]));
}

export type AllocationChange = Partial<
  Pick<
    typeof allocations.$inferInsert,
    | "errorCode"
    | "errorMessage"
    | "grantTaskId"
    | "decommissionId"
    | "endReason"
    | "endForced"
    | "sshKeys"
    | "keysDue"
    | "keysTaskId"
  >
>;

/** Code calls `moveAllocation` instead of `setAllocationStatus`, because `moveAllocation` also records the change of status. */
export async function setAllocationStatus(
  tx: Tx,
  id: AllocationId,
  move: { readonly from: AllocationStatus; readonly to: AllocationStatus },
  change: AllocationChange,
): Promise<AllocationRow | null> {
  const [row] = await tx
    .update(allocations)
    .set({
      ...change,
      status: move.to,
      problem: null,
      ...(move.to === "active" ? { activeAt: sql`now()` } : {}),
      ...(move.to === "ended" ? { endedAt: sql`now()` } : {}),
    })
    .where(and(eq(allocations.id, id), eq(allocations.status, move.from)))
    .returning();
  return row ?? null;
}

export async function setTurnover(
  tx: Tx,
  id: AllocationId,
  change: Pick<AllocationRow, "decommissionId" | "endForced">,
): Promise<void> {
  await tx
    .update(allocations)
    .set({ ...change, problem: null })
    .where(eq(allocations.id, id));
}

/** Stores which SSH keys the agent was last ordered to give to the account, which task does it, and whether a further change is due. */
export async function setKeys(
  tx: Tx,
  id: AllocationId,
  change: Pick<AllocationChange, "sshKeys" | "keysDue" | "keysTaskId" | "grantTaskId">,
): Promise<void> {
  await tx
    .update(allocations)
    .set({ ...change, problem: null })
    .where(eq(allocations.id, id));
}

/**
 * Ties the allocation to the node's newly installed system, and stores the SSH keys of the order to that system's agent. Until the agent has made the
 * account on the new system, the allocation names no task that proves that the account exists.
 */
export async function moveToNewSystem(
  tx: Tx,
  id: AllocationId,
  change: Pick<AllocationRow, "generation" | "sshKeys">,
): Promise<void> {
  await tx
    .update(allocations)
    .set({ ...change, grantTaskId: null, keysDue: false, keysTaskId: null, problem: null })
    .where(eq(allocations.id, id));
}

/**
 * Records in the node's open allocation the generation whose system a reinstall has released, and the disks that the host had before its first tenant
 * in that generation. If a reinstall begins again, its own record of the release is cleared, but the allocation keeps the record of the release until
 * it ends.
 */
export async function recordReinstall(
  tx: Tx,
  { id, generation }: Pick<Node, "id" | "generation">,
  disks: readonly string[],
): Promise<void> {
  await tx
    .update(allocations)
    .set({
      reinstalledGeneration: sql`greatest(${allocations.reinstalledGeneration}, ${generation}::int)`,
      disksBefore: sql`array(select distinct unnest(${allocations.disksBefore} || ${sql.param([...disks])}::text[]) order by 1)`,
    })
    .where(and(eq(allocations.nodeId, id), ne(allocations.status, "ended")));
}

/** Marks the allocations' SSH keys as due, so that a hub soon orders the agents to set them. */
export async function markKeysDue(tx: Tx, ids: readonly AllocationId[]): Promise<void> {
  if (ids.length === 0) return;
  await tx
    .update(allocations)
    .set({ keysDue: true })
    .where(inArray(allocations.id, [...ids]));
}

const isLive = inArray(allocations.status, ["granting", "active", "failed"]);

/** Removes a stored SSH key from the live allocations of the tenant that name it. What ended allocations named stays as history. */
export async function detachKey(tx: Tx, tenant: string, key: SshKeyId): Promise<void> {
  await tx
    .update(allocations)
    .set({ sshKeyIds: sql`array_remove(${allocations.sshKeyIds}, ${key}::uuid)` })
    .where(and(eq(allocations.tenant, tenant), isLive, sql`${key}::uuid = any(${allocations.sshKeyIds})`));
}

/** Removes a key group from the live allocations of the tenant that name it. */
export async function detachKeyGroup(tx: Tx, tenant: string, group: SshKeyGroupId): Promise<void> {
  await tx
    .update(allocations)
    .set({ sshKeyGroupIds: sql`array_remove(${allocations.sshKeyGroupIds}, ${group}::uuid)` })
    .where(and(eq(allocations.tenant, tenant), isLive, sql`${group}::uuid = any(${allocations.sshKeyGroupIds})`));
}

/**
 * Stores the reason why the hub could not bring an allocation to its next status. `noteAllocationProblem` returns false if the allocation already has
 * the given reason, or has ended.
 */
export async function noteAllocationProblem(tx: Tx, id: AllocationId, problem: string): Promise<boolean> {
  const told = await tx
    .update(allocations)
    .set({ problem })
    .where(
      and(
        eq(allocations.id, id),
        ne(allocations.status, "ended"),
        sql`${allocations.problem} is distinct from ${problem}`,
      ),
    )
    .returning({ id: allocations.id });
  return told.length > 0;
}

/**
 * Clears the stored problem of every allocation that is not in the list `stuck`. The list `stuck` contains the allocations that the hub could not
 * bring to their next status at the latest check.
 */
export async function forgetAllocationProblems(tx: Tx, stuck: readonly AllocationId[]): Promise<void> {
  await tx
    .update(allocations)
    .set({ problem: null })
    .where(
      and(
        isNotNull(allocations.problem),
        ne(allocations.status, "ended"),
        sql`${allocations.id} <> all(${sql.param([...stuck])}::uuid[])`,
      ),
    );
}

/**
 * Stores how the agent found that the tenant could get the rights of root. The findings of a later run of the task `allocation.grant_user` are added
 * to the findings of earlier runs.
 */
export async function noteRootBy(tx: Tx, id: AllocationId, ways: readonly string[]): Promise<void> {
  if (ways.length === 0) return;
  const all = sql`array(select distinct unnest(${allocations.rootBy} || ${sql.param([...ways])}::text[]) order by 1)`;
  await tx.update(allocations).set({ rootBy: all }).where(eq(allocations.id, id));
}

export interface AllocationFilter {
  readonly nodeId?: NodeId | undefined;
  readonly siteId?: SiteId | undefined;
  readonly hostname?: string | undefined;
  readonly tenant?: string | undefined;
  readonly loginUser?: string | undefined;
  readonly status?: AllocationStatus | undefined;
  /** Selects the allocations whose account has a stored SSH key, which the allocation names by the key's id or through a key group. */
  readonly sshKeyId?: SshKeyId | undefined;
  /** Allocations whose account follows the key group. */
  readonly sshKeyGroupId?: SshKeyGroupId | undefined;
  readonly reach: Reach;
}

const isOpen = ne(allocations.status, "ended");

/** The account of an ending allocation no longer follows changes of stored keys and key groups. */
const hasKeyGroup = (group: SshKeyGroupId): SQL | undefined =>
  and(isLive, sql`${group}::uuid = any(${allocations.sshKeyGroupIds})`);

/** A key group that may not be used at the allocation's site adds no key to the account. */
const hasKey = (key: SshKeyId): SQL | undefined =>
  and(
    isLive,
    sql`(${key}::uuid = any(${allocations.sshKeyIds}) or exists (
      select 1 from ${sshKeyGroups} g where g.id = any(${allocations.sshKeyGroupIds}) and ${key}::uuid = any(g.key_ids)
        and (g.sites is null or ${allocations.siteId} = any(g.sites))))`,
  );

export const listAllocations = (db: Db, filter: AllocationFilter, page: AllocationPage): ReturnType<typeof listAmong> =>
  listAmong(db, filter, page, undefined);

/** Lists only allocations that have not ended. */
export const listOpenAllocations = (
  db: Db,
  filter: AllocationFilter,
  page: AllocationPage,
): ReturnType<typeof listAmong> => listAmong(db, filter, page, isOpen);

interface AllocationPage {
  readonly before: readonly [string, string] | null;
  readonly limit: number;
}

async function listAmong(
  db: Db,
  filter: AllocationFilter,
  page: AllocationPage,
  among: SQL | undefined,
): Promise<{ allocation: AllocationRow; at: string }[]> {
  const conditions: (SQL | undefined)[] = [
    among,
    filter.nodeId === undefined ? undefined : eq(allocations.nodeId, filter.nodeId),
    filter.siteId === undefined ? undefined : eq(allocations.siteId, filter.siteId),
    filter.hostname === undefined ? undefined : eq(allocations.hostname, filter.hostname),
    filter.tenant === undefined ? undefined : eq(allocations.tenant, filter.tenant),
    filter.loginUser === undefined ? undefined : eq(allocations.loginUser, filter.loginUser),
    filter.status === undefined ? undefined : eq(allocations.status, filter.status),
    filter.sshKeyId === undefined ? undefined : hasKey(filter.sshKeyId),
    filter.sshKeyGroupId === undefined ? undefined : hasKeyGroup(filter.sshKeyGroupId),
    isWithin(filter.reach, { site: allocations.siteId, tenant: allocations.tenant }),
    page.before === null
      ? undefined
      : sql`(${allocations.createdAt}, ${allocations.id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  return db
    .select({ allocation: allocations, at: sql<string>`${allocations.createdAt}::text` })
    .from(allocations)
    .where(and(...conditions))
    .orderBy(desc(allocations.createdAt), desc(allocations.id))
    .limit(page.limit);
}
