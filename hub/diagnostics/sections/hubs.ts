import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { sql } from "../../db/orm.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_HUBS = 100;
/** The number of the latest workflow events in which the diagnostics look for hubs. 1,000 events are enough to find every hub that runs workflows. */
const LATEST_EVENTS = 1_000;

const Hub = z.strictObject({
  hub_id: z.uuid(),
  workflow_leases: z.int(),
  site_leases: z.int(),
  /** The number of expired leases on workflows and sites that the hub should have renewed. */
  lapsed_leases: z.int(),
  leases_until: Timestamp.nullable(),
  agent_sessions: z.int(),
  last_agent_contact_at: Timestamp.nullable(),
  /** The time when the hub last ran a stage, if the latest 1,000 workflow events contain an event of that stage. */
  last_stage_event_at: Timestamp.nullable(),
});

export const hubs = databaseSection({
  name: "hubs",
  about: "Every hub that holds a lease or an agent's session, or has run a stage lately",
  data: z.array(Hub),
  read: async (tx) => {
    const { rows } = await tx.execute<z.input<typeof Hub> & { of: number }>(sql`
      with leases as (
        select lease_owner as hub_id, 1 as workflow, 0 as site, lease_until from workflows where lease_owner is not null
        union all select lease_owner, 0, 1, lease_until from maas_site_watches where lease_owner is not null),
      known as (
        select hub_id, sum(workflow)::int as workflows, sum(site)::int as sites,
          (count(*) filter (where lease_until < now()))::int as lapsed, max(lease_until) as until,
          0 as sessions, null::timestamptz as contact, null::timestamptz as staged from leases group by 1
        union all
        select hub_id, 0, 0, 0, null, count(*)::int, max(last_seen_at), null from agent_sessions
          where state = 'open' group by 1
        union all
        select hub_id, 0, 0, 0, null, 0, null, max(occurred_at) from
          (select hub_id, occurred_at from workflow_events order by id desc limit ${LATEST_EVENTS}) latest
          where hub_id is not null group by 1),
      hubs as (
        select hub_id, sum(workflows)::int as workflows, sum(sites)::int as sites, sum(lapsed)::int as lapsed, max(until) as until,
          sum(sessions)::int as sessions, max(contact) as contact, max(staged) as staged from known group by 1)
      select hub_id, workflows as workflow_leases, sites as site_leases, lapsed as lapsed_leases, ${iso("until")} as leases_until,
        sessions as agent_sessions, ${iso("contact")} as last_agent_contact_at, ${iso("staged")} as last_stage_event_at, ${OF}
      from hubs order by greatest(until, contact, staged) desc limit ${MOST_HUBS}`);
    const { shown, leftOut } = bounded("hubs", rows);
    return { data: shown, leftOut };
  },
});
