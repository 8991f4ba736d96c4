import type { SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { sql } from "../orm.ts";
import type { Db } from "../tx.ts";

/** A lost connection is back within seconds, most of the time. */
const AWAY_SECONDS = 30;

/**
 * Deployed machines of nodes in service of which MAAS may know something that we do not, or not know yet what we know: the agent is away, or MAAS calls
 * them off. `key` changes when the reason does. One statement.
 */
export async function doubtfulMachines(db: Db, siteId: SiteId): Promise<{ systemId: string; key: string }[]> {
  const { rows } = await db.execute<{ system_id: string; key: string }>(sql`
    select m.system_id, concat_ws(' ', m.power_state, a.closed_at) as key
    from node_maas_state s
    join nodes n on n.id = s.node_id and n.status in ('active', 'offline')
    join maas_machines m on m.site_id = s.site_id and m.system_id = s.maas_system_id and m.status = ${MAAS_STATUS.deployed} and not m.absent
    left join agent_sessions a on a.node_id = n.id and a.generation = n.generation
    where s.site_id = ${siteId}::uuid and (m.power_state in ('off', 'error') or a.node_id is null
      or (a.state = 'closed' and coalesce(a.closed_at, a.last_seen_at) < now() - make_interval(secs => ${AWAY_SECONDS})))`);
  return rows.map((row) => ({ systemId: row.system_id, key: row.key }));
}
