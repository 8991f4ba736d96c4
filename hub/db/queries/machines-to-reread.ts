import type { SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { sql } from "../orm.ts";
import type { Db } from "../tx.ts";

const AWAY_SECONDS = 30;

/**
 * Returns deployed machines of nodes in service whose stored state may be outdated; the hub reads these machines from MAAS repeatedly. A machine's
 * stored state may be outdated if the node's agent is away, or if MAAS reports the machine's power as off or in error. The `key` of a machine in the
 * result of `machinesToReread` changes when the reason to read the machine from MAAS changes.
 */
export async function machinesToReread(db: Db, siteId: SiteId): Promise<{ systemId: string; key: string }[]> {
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
