import type { SiteId } from "../../../shared/ids.ts";
import { TERMINAL_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { eq, sql } from "../orm.ts";
import { maasSiteWatches } from "../schema/index.ts";
import type { Db } from "../tx.ts";

export interface KnownRegion {
  /** The id and content of the newest MAAS event that the hub has read for the site; null if the hub has read no event. */
  readonly place: { readonly cursor: number; readonly mark: string | null } | null;
  /** The machines of the site's nodes and unfinished onboardings, except machines that Muster knows to be gone. */
  readonly machines: readonly { readonly systemId: string; readonly ipmiIp: string }[];
}

export async function readKnownRegion(db: Db, siteId: SiteId): Promise<KnownRegion> {
  const [watch] = await db
    .select({ cursor: maasSiteWatches.eventCursor, mark: maasSiteWatches.eventMark })
    .from(maasSiteWatches)
    .where(eq(maasSiteWatches.siteId, siteId));
  const { rows } = await db.execute<{ system_id: string; ipmi_ip: string }>(sql`
    select known.system_id, known.ipmi_ip from (
      select s.maas_system_id as system_id, s.ipmi_ip
      from node_maas_state s join nodes n on n.id = s.node_id
      where s.site_id = ${siteId}::uuid and n.status <> 'deleted'
      union
      select o.maas_system_id, o.ipmi_ip
      from node_onboardings o join workflows w on w.id = o.onboarding_id
      where o.site_id = ${siteId}::uuid and o.maas_system_id is not null
        and w.status <> all(${sql.param([...TERMINAL_WORKFLOW_STATUSES])}::text[])) known
    left join maas_machines m on m.site_id = ${siteId}::uuid and m.system_id = known.system_id
    where m.absent is not true
    order by known.system_id`);
  const { cursor = null, mark = null } = watch ?? {};
  return {
    place: cursor === null ? null : { cursor, mark },
    machines: rows.map((row) => ({ systemId: row.system_id, ipmiIp: row.ipmi_ip })),
  };
}
