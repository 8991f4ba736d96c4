import { DISK_ERASE, RESTORED } from "../../../shared/health-report.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { isOfOneMachine } from "../../../shared/mac-address.ts";
import { and, asc, eq, inArray, type SQL, sql } from "../orm.ts";
import { type NodeHealthOverride, nodeHealthOverrides } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** SQL that is true for a health override that has not expired. */
const isInTime = sql`(${nodeHealthOverrides.expiresAt} is null or ${nodeHealthOverrides.expiresAt} > now())`;

/** SQL for the ids of the nodes that take no new tenant because of a health override, as `overridesThat` of hub/node/health-aggregate.ts decides. */
export const nodesBarredByHealth: SQL = sql`(
  select h.node_id from node_health_overrides h
  where h.prevents_allocations and (h.expires_at is null or h.expires_at > now())
    and (h.mode = 'replace' or h.source in (${DISK_ERASE}, ${RESTORED}) or not exists (
      select from node_health_overrides r
      where r.node_id = h.node_id and r.mode = 'replace' and (r.expires_at is null or r.expires_at > now()))))`;

/** Returns the nodes' health overrides that have not expired. */
export async function listHealthOverrides(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<readonly NodeHealthOverride[]> {
  if (nodeIds.length === 0) return [];
  return db
    .select()
    .from(nodeHealthOverrides)
    .where(and(inArray(nodeHealthOverrides.nodeId, [...nodeIds]), isInTime))
    .orderBy(asc(nodeHealthOverrides.source));
}

type Given = "nodeId" | "source" | "target" | "reason" | "setBy";
/** A new health override without `alerts` is one that Muster itself sets. */
export type NewHealthOverride = Pick<NodeHealthOverride, Given> &
  Partial<Pick<NodeHealthOverride, "since" | "neededErase" | "mode" | "alerts" | "expiresAt">>;

/** Stores a health override in place of an older override of the same node and source. */
export async function writeHealthOverride(tx: Tx, override: NewHealthOverride): Promise<NodeHealthOverride> {
  const preventsAllocations =
    override.alerts?.some(({ classifications }) => classifications.includes("PreventAllocations")) ?? true;
  const row = {
    ...{ neededErase: null, since: sql`now()`, mode: "merge" as const, alerts: null, expiresAt: null },
    ...override,
    preventsAllocations,
  };
  const [written] = await tx
    .insert(nodeHealthOverrides)
    .values(row)
    .onConflictDoUpdate({
      target: [nodeHealthOverrides.nodeId, nodeHealthOverrides.source],
      set: { ...row, revision: sql`${nodeHealthOverrides.revision} + 1` },
    })
    .returning();
  if (written === undefined) throw new Error("the health override was not stored");
  return written;
}

/** Deletes and returns up to `most` expired health overrides; if `of` names a node, only overrides of this node. */
export async function takeExpiredOverrides(tx: Tx, most: number, of: NodeId | null): Promise<NodeHealthOverride[]> {
  const { nodeId, source } = nodeHealthOverrides;
  return tx
    .delete(nodeHealthOverrides)
    .where(sql`(${nodeId}, ${source}) in (
      select o.node_id, o.source from node_health_overrides o where o.expires_at <= now() and (${of}::uuid is null or o.node_id = ${of}::uuid)
      order by o.expires_at limit ${most} for update skip locked)`)
    .returning();
}

export async function deleteHealthOverride(tx: Tx, nodeId: NodeId, source: string): Promise<NodeHealthOverride | null> {
  const [row] = await tx
    .delete(nodeHealthOverrides)
    .where(and(eq(nodeHealthOverrides.nodeId, nodeId), eq(nodeHealthOverrides.source, source)))
    .returning();
  return row ?? null;
}

/** A machine that becomes the machine of a node, with the MAC addresses of its interfaces in lower case. */
export interface HeirMachine {
  readonly nodeId: NodeId;
  readonly siteId: SiteId;
  readonly maasSystemId: string;
  readonly macAddresses: readonly string[];
}

/** The facts of `HeirMachine` as SQL. */
interface HeirSql {
  readonly siteId: SQL;
  readonly systemId: SQL;
  readonly macs: SQL;
}

/**
 * SQL that is true for a health override that a deleted node, or a node that never enrolled, left for the machine. The given machine is the health
 * override's machine if both have the same system id at the same site. A machine that was deleted and then enlisted in MAAS has a new system id and
 * its old MAC addresses, even at another site. If the system ids of the given machine and of the health override's machine differ, the hub compares
 * the given machine's MAC addresses with those in the enrollment tokens for the health override's machine. If no enrollment token for the health
 * override's machine is left, the hub compares the given machine's MAC addresses with those in the inventory of the override's node. The inventory of
 * the health override's node describes the node's last machine, which may not be the override's machine.
 */
function wasLeftFor({ siteId, systemId, macs }: HeirSql): SQL {
  const { nodeId: of, target } = nodeHealthOverrides;
  const gone = sql`not exists (select 1 from nodes n where n.id = ${of} and n.status <> 'deleted')`;
  // The row of the onboarding keeps the site of a node that never enrolled and has no row any more.
  const sameSite = sql`${siteId}::uuid in (
    select n.site_id from nodes n where n.id = ${of} union select o.site_id from node_onboardings o where o.node_id = ${of})`;
  const token = sql`select 1 from enrollment_tokens t where t.node_id = ${of} and t.maas_system_id = ${target}`;
  const inInventory = sql`exists (select 1 from node_inventories i, jsonb_path_query(i.inventory, '$.interfaces[*].mac') mac
    where i.node_id = ${of} and lower(mac #>> '{}') = any(${macs}::text[]))`;
  return sql`${gone} and (
      (${target} = ${systemId} and ${sameSite})
      or exists (${token} and t.bound_macs && ${macs}::text[])
      or (not exists (${token}) and ${inInventory}))`;
}

/** Deletes and returns the health overrides that deleted nodes, and nodes that never enrolled, left for the machine. */
export const takeLeftOverrides = (tx: Tx, heir: HeirMachine): Promise<NodeHealthOverride[]> => {
  const macs = sql`${sql.param(heir.macAddresses.filter(isOfOneMachine))}`;
  return tx
    .delete(nodeHealthOverrides)
    .where(wasLeftFor({ siteId: sql`${heir.siteId}`, systemId: sql`${heir.maasSystemId}`, macs }))
    .returning();
};

/**
 * Returns the nodes whose machines have a health override that a deleted node, or a node that never enrolled, left; one SQL statement serves any
 * number of machines.
 */
export async function nodesWithLeftOverrides(tx: Tx, heirs: readonly HeirMachine[]): Promise<ReadonlySet<NodeId>> {
  const given = heirs.map((one) => ({
    node_id: one.nodeId,
    site_id: one.siteId,
    system_id: one.maasSystemId,
    macs: one.macAddresses.filter(isOfOneMachine),
  }));
  const left = wasLeftFor({ siteId: sql`heir.site_id`, systemId: sql`heir.system_id`, macs: sql`heir.macs` });
  const { rows } = await tx.execute<{ node_id: NodeId }>(sql`
    select distinct heir.node_id from ${nodeHealthOverrides}, jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      as heir(node_id uuid, site_id uuid, system_id text, macs text[])
    where ${left}`);
  return new Set(rows.map((row) => row.node_id));
}
