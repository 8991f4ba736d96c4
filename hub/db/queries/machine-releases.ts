import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, eq, gte, or, sql } from "../orm.ts";
import { type Node, nodeDecommissions } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** True if MAAS has released the installed system of the node's present generation, so that the system and its agent are gone. */
export async function isHostReleased(db: Db | Tx, node: Pick<Node, "id" | "generation">): Promise<boolean> {
  const rows = await db
    .select({ id: nodeDecommissions.decommissionId })
    .from(nodeDecommissions)
    .where(
      and(
        eq(nodeDecommissions.nodeId, node.id),
        or(
          gte(nodeDecommissions.releasedGeneration, node.generation),
          gte(nodeDecommissions.reinstalledGeneration, node.generation),
        ),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

export interface Retirement {
  readonly nodeId: NodeId;
  /**
   * The seconds since the node was retired, or since an operator last cancelled the release of its machine. After a cancelled release,
   * `retiredForSeconds` counts from zero, because the operator wants to keep the machine for now.
   */
  readonly retiredForSeconds: number | null;
  /**
   * The profile's delay between retirement and release; null if the machine stays until a person releases it. `retiredReleaseAfterSeconds` is also
   * null if the profile's `second_person` contains `erase` or `full_decommission`, so that no machine is released without a person.
   */
  readonly retiredReleaseAfterSeconds: number | null;
  readonly released: boolean;
}

export async function retirementsOf(db: Db | Tx, siteId: SiteId): Promise<ReadonlyMap<NodeId, Retirement>> {
  const { rows } = await db.execute<{
    id: NodeId;
    retired_for: number | null;
    release_after: number | null;
    released: boolean;
  }>(sql`
    select n.id, extract(epoch from now() - greatest(
        (select max(e.occurred_at) from node_events e where e.node_id = n.id and e.type = 'status_changed' and e.to_status = 'retired'),
        (select max(w.completed_at) from node_decommissions d join workflows w on w.id = d.decommission_id
          where d.node_id = n.id and d.mode in ('release', 'full_decommission') and w.status = 'cancelled')))::float8 as retired_for,
      case when p.second_person && '{erase,full_decommission}' then null else p.retired_release_after_seconds end as release_after,
      exists (select 1 from node_decommissions d where d.node_id = n.id and d.released_generation >= n.generation) as released
    from nodes n
    join node_maas_state m on m.node_id = n.id
    left join maas_site_profiles p on p.id = (
      select o.profile_id from node_onboardings o where o.node_id = n.id order by o.created_at desc limit 1)
    where n.site_id = ${siteId} and n.status = 'retired'`);
  return new Map(
    rows.map((row) => [
      row.id,
      {
        nodeId: row.id,
        retiredForSeconds: row.retired_for,
        retiredReleaseAfterSeconds: row.release_after,
        released: row.released,
      },
    ]),
  );
}
