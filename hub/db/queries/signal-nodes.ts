import { type NamedNode, NODE_NAMES, type NodeNameKind } from "../../../shared/api/signals.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import { machineSearchTerms } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Tx } from "../tx.ts";

/** A node that matches the name of a host in a readiness signal. */
export interface FittingNode {
  readonly id: NodeId;
  readonly hostname: string;
  readonly siteId: SiteId | null;
  readonly generation: number;
  readonly begunAt: Date;
}

export const kindOf = (named: NamedNode): NodeNameKind => NODE_NAMES.find((kind) => named[kind] !== undefined) ?? "id";

interface Row {
  [column: string]: unknown;
  readonly place: number;
  readonly id: NodeId;
  readonly hostname: string;
  readonly site_id: SiteId | null;
  readonly generation: number;
  readonly began: string;
}

/**
 * Returns the nodes, without deleted ones, that fit each name, by the position of the name in `names`. `fittingNodes` looks for a MAC address in the
 * hosts' inventories, in the onboarding requests of hosts without an inventory, and in what MAAS says about machines. `fittingNodes` looks for a
 * serial number only in what MAAS says about machines.
 */
export async function fittingNodes(
  tx: Tx,
  names: readonly NamedNode[],
): Promise<ReadonlyMap<number, readonly FittingNode[]>> {
  const kinds = names.map(kindOf);
  const values = names.map((named, place) => String(named[kinds[place] ?? "id"]));
  const sites = names.map((named) => named.site_id ?? null);
  const { rows } = await tx.execute<Row>(sql`
    select distinct w.place::int as place, n.id, n.hostname, n.site_id, n.generation, n.generation_began_at::text as began
    from unnest(${sql.param(kinds)}::text[], ${sql.param(values)}::text[], ${sql.param(sites)}::uuid[])
      with ordinality w(kind, value, site, place)
    cross join lateral (
      select n.id from nodes n where w.kind = 'id' and n.id = case when w.kind = 'id' then w.value::uuid end
      union all select n.id from nodes n where w.kind = 'hostname' and n.hostname = w.value
      union all select i.node_id from node_inventories i where w.kind = 'mac' and i.search_terms ? w.value
      union all select o.node_id from node_onboardings o where w.kind = 'mac' and o.pxe_mac = w.value
        and not exists (select from node_inventories known where known.node_id = o.node_id)
      union all select s.node_id from maas_machines m join node_maas_state s on s.site_id = m.site_id and s.maas_system_id = m.system_id
        where w.kind in ('mac', 'serial') and ${machineSearchTerms} ? lower(w.value)
          and (w.kind = 'mac' or lower(m.details ->> 'serial') = lower(w.value))
      union all select s.node_id from node_maas_state s where w.kind = 'maas_system_id' and s.maas_system_id = w.value) f
    join nodes n on n.id = f.id
    where n.status <> 'deleted' and (w.site is null or n.site_id = w.site)
    order by place, n.hostname, n.id`);
  const found = new Map<number, FittingNode[]>();
  for (const { place, id, hostname, site_id: siteId, generation, began } of rows) {
    const fitting = { id, hostname, siteId, generation, begunAt: toDate(began) };
    found.set(place - 1, [...(found.get(place - 1) ?? []), fitting]);
  }
  return found;
}

/** Locks the nodes in the order of their ids, so that two requests with several signals cannot deadlock, and returns the nodes that are not deleted. */
export async function lockNodesOfSignals(tx: Tx, ids: readonly NodeId[]): Promise<ReadonlyMap<NodeId, FittingNode>> {
  if (ids.length === 0) return new Map();
  const { rows } = await tx.execute<Omit<Row, "place">>(sql`
    select n.id, n.hostname, n.site_id, n.generation, n.generation_began_at::text as began from nodes n
    where n.id = any(${sql.param([...ids])}::uuid[]) and n.status <> 'deleted' order by n.id for no key update`);
  return new Map(
    rows.map(({ id, hostname, site_id: siteId, generation, began }) => [
      id as NodeId,
      {
        id: id as NodeId,
        hostname: String(hostname),
        siteId: siteId as SiteId | null,
        generation: Number(generation),
        begunAt: toDate(began),
      },
    ]),
  );
}
