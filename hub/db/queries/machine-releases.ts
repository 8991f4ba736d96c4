import { and, eq, gte, sql } from "drizzle-orm";
import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { type Node, nodeDecommissions } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

/** Records that MAAS gave up the system that the provisioning had installed. What an earlier look recorded stays. */
export async function recordMachineReleased(tx: Tx, id: WorkflowId, generation: number): Promise<void> {
  await tx
    .update(nodeDecommissions)
    .set({ releasedGeneration: generation })
    .where(eq(nodeDecommissions.decommissionId, id));
}

/** True when MAAS gave up what the node's present provisioning had installed: its host, and with it its agent, is gone. */
export async function isHostReleased(db: Db | Tx, node: Pick<Node, "id" | "generation">): Promise<boolean> {
  const rows = await db
    .select({ id: nodeDecommissions.decommissionId })
    .from(nodeDecommissions)
    .where(and(eq(nodeDecommissions.nodeId, node.id), gte(nodeDecommissions.releasedGeneration, node.generation)))
    .limit(1);
  return rows.length > 0;
}

/** A retired node that nobody works on, and the machine that it is. */
export interface RetiredNode {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly maasSystemId: string;
  /** Since when it is left as it is: since it was retired, or since an operator cancelled the last release of its machine. */
  readonly retiredSince: Date;
}

/**
 * The retired nodes of a site that have been left for as long as their profiles say, in one statement for any number of nodes. Whether there is
 * anything to release is MAAS's to say (lifecycle 6.4). A release that failed holds its node, which is then not among them.
 */
export async function retiredNodesDue(db: Db | Tx, siteId: SiteId): Promise<RetiredNode[]> {
  const { rows } = await db.execute<{ id: NodeId; hostname: string; system_id: string; since: string }>(sql`
    select n.id, n.hostname, m.maas_system_id as system_id, left_since.at as since
    from nodes n
    join node_maas_state m on m.node_id = n.id
    join maas_site_profiles p on p.id = (
      select o.profile_id from node_onboardings o where o.node_id = n.id order by o.created_at desc limit 1)
    cross join lateral (
      select greatest(
        (select max(e.occurred_at) from node_events e where e.node_id = n.id and e.type = 'status_changed' and e.to_status = 'retired'),
        (select max(w.completed_at) from node_decommissions d join workflows w on w.id = d.decommission_id
          where d.node_id = n.id and d.mode = 'release' and w.status = 'cancelled')) as at) left_since
    where n.site_id = ${siteId} and n.status = 'retired'
      and left_since.at + make_interval(secs => p.retired_release_after_seconds) <= now()
      and not exists (select 1 from workflow_subjects s where s.subject = 'node:' || n.id)
    order by left_since.at`);
  return rows.map((row) => ({
    nodeId: row.id,
    hostname: row.hostname,
    maasSystemId: row.system_id,
    retiredSince: toDate(row.since),
  }));
}
