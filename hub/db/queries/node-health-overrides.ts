import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { isOfOneMachine } from "../../../shared/mac-address.ts";
import { and, asc, eq, inArray, type SQL, sql } from "../orm.ts";
import { type NodeHealthOverride, nodeHealthOverrides } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * The source of the health overrides of all nodes after a restore of the database. A person must look at a host before the host gets a new tenant, and
 * before the hub ends an allocation by itself, because the host may have another tenant than the older database says.
 */
export const RESTORED = "restore";

export async function listHealthOverrides(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<readonly NodeHealthOverride[]> {
  if (nodeIds.length === 0) return [];
  return db
    .select()
    .from(nodeHealthOverrides)
    .where(inArray(nodeHealthOverrides.nodeId, [...nodeIds]))
    .orderBy(asc(nodeHealthOverrides.source));
}

export type NewHealthOverride = Omit<NodeHealthOverride, "since" | "neededErase"> &
  Partial<Pick<NodeHealthOverride, "since" | "neededErase">>;

/** Stores a health override in place of an older override of the same node and source. */
export async function writeHealthOverride(tx: Tx, override: NewHealthOverride): Promise<void> {
  const row = { neededErase: null, since: sql`now()`, ...override };
  await tx
    .insert(nodeHealthOverrides)
    .values(row)
    .onConflictDoUpdate({ target: [nodeHealthOverrides.nodeId, nodeHealthOverrides.source], set: row });
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

/** A machine of `HeirMachine` as SQL. */
interface HeirSql {
  readonly siteId: SQL;
  readonly systemId: SQL;
  readonly macs: SQL;
}

/**
 * SQL that is true for a health override that a gone node left for the machine. A gone node is deleted, or has no row because the node never
 * enrolled. The given machine is the override's machine if both have the same system id at the same site. A machine that was deleted and then
 * enlisted in MAAS has a new system id and its old MAC addresses, even at another site. If the system ids differ, the hub compares the given
 * machine's MAC addresses with those in the enrollment tokens for the override's machine. If no enrollment token is left, the hub compares the given
 * machine's MAC addresses with those in the gone node's inventory. The inventory describes the gone node's last machine, which may not be the
 * override's machine.
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

/** Deletes and returns the health overrides that gone nodes left for the machine. */
export const takeLeftOverrides = (tx: Tx, heir: HeirMachine): Promise<NodeHealthOverride[]> => {
  const macs = sql`${sql.param(heir.macAddresses.filter(isOfOneMachine))}`;
  return tx
    .delete(nodeHealthOverrides)
    .where(wasLeftFor({ siteId: sql`${heir.siteId}`, systemId: sql`${heir.maasSystemId}`, macs }))
    .returning();
};

/** Returns the nodes of those machines for which a gone node left a health override, by one statement for any number of machines. */
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
