import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, eq, gte, sql } from "../orm.ts";
import { type Node, nodeDecommissions } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * True if MAAS released the installed system of the node's present generation. After MAAS released a host's installed system, that system and its
 * agent are gone.
 */
export async function isHostReleased(db: Db | Tx, node: Pick<Node, "id" | "generation">): Promise<boolean> {
  const rows = await db
    .select({ id: nodeDecommissions.decommissionId })
    .from(nodeDecommissions)
    .where(and(eq(nodeDecommissions.nodeId, node.id), gte(nodeDecommissions.releasedGeneration, node.generation)))
    .limit(1);
  return rows.length > 0;
}

/** How long a node has been retired, and when the node's profile lets the hub release the node's machine (lifecycle 6.4). */
export interface Retirement {
  readonly nodeId: NodeId;
  /**
   * Seconds since the node was retired, or since an operator cancelled the last release of its machine. When an operator cancels a release of the
   * machine, `retiredForSeconds` begins again at zero, because the operator wants to keep the machine for now. `retiredForSeconds` is null if the hub
   * knows neither the time of the node's retirement nor the time of a cancelled release.
   */
  readonly retiredForSeconds: number | null;
  /** The profile's delay between retirement and release; null if the machine stays until a person releases it, or if the node had no onboarding. */
  readonly retiredReleaseAfterSeconds: number | null;
  /** True if MAAS has already released the retired node's machine. */
  readonly released: boolean;
}

/** Returns the retired nodes of a site that are bound to a machine, with one SQL statement for any number of nodes. */
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
      p.retired_release_after_seconds as release_after,
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
