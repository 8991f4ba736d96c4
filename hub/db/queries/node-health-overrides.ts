import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, inArray, sql } from "../orm.ts";
import { type NodeHealthOverride, nodeHealthOverrides } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

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

/**
 * Deletes and returns the health overrides that deleted nodes left for the machine. A deleted node had the machine's host if the override names the
 * machine, or if the node's tokens or inventory have a MAC address of the machine. A machine that was deleted and then enlisted in MAAS has a new
 * system id and its old MAC addresses, even at another site.
 */
export const takeLeftOverrides = (tx: Tx, heir: HeirMachine): Promise<NodeHealthOverride[]> => {
  const macs = sql.param(heir.macAddresses.filter((mac) => mac !== NO_MAC));
  const left = sql`(
    select n.id from nodes n where n.status = 'deleted' and n.id = ${nodeHealthOverrides.nodeId} and (
      (n.site_id = ${heir.siteId}::uuid and ${nodeHealthOverrides.target} = ${heir.maasSystemId})
      or exists (select 1 from enrollment_tokens t where t.node_id = n.id and t.bound_macs && ${macs}::text[])
      or exists (select 1 from node_inventories i, jsonb_path_query(i.inventory, '$.interfaces[*].mac') mac
        where i.node_id = n.id and lower(mac #>> '{}') = any(${macs}::text[]))))`;
  return tx.delete(nodeHealthOverrides).where(sql`${nodeHealthOverrides.nodeId} in ${left}`).returning();
};
/** The MAC address that the system shows for an interface without a MAC address of its own. */
const NO_MAC = "00:00:00:00:00:00";
