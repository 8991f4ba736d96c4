import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const agents = gauge({
  name: "muster_agents",
  help: "Nodes with a host in use (enrolling, active, offline, quarantined or draining), by the state of their agent; never means that no agent of the node has connected yet.",
  labels: { site: siteLabel, state: ["connected", "disconnected", "never"] },
  told: "database",
});
const overdue = gauge({
  name: "muster_agent_certificates_overdue",
  help: "Connected agents whose client certificate is past three quarters of its life, so that the renewal of the certificate fails or is late.",
  labels: { site: siteLabel },
  told: "database",
});

type Row = { site_id: string | null; state: "connected" | "disconnected" | "never"; n: number; overdue: number };

export const agentGauges = gaugeGroup({
  name: "agents",
  families: [agents, overdue],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(sql`
      with newest as (
        select node_id, generation, max(not_after) as until, max(not_before) as since from node_certificates
        where not_after > now() and revoked_at is null group by 1, 2)
      select n.site_id, case s.state when 'open' then 'connected' when 'closed' then 'disconnected' else 'never' end as state,
        count(*)::int as n,
        (count(*) filter (where s.state = 'open' and coalesce(now() > c.since + (c.until - c.since) * 0.75, true)))::int as overdue
      from nodes n left join agent_sessions s on s.node_id = n.id
      left join newest c on c.node_id = n.id and c.generation = n.generation
      where n.status in ('enrolling', 'active', 'offline', 'quarantined', 'draining')
      group by 1, 2 order by 1, 2`);
    agents.show(rows.map(({ site_id, state, n }) => ({ labels: { site: sites(site_id), state }, value: n })));
    const late = rows.filter((row) => row.state === "connected");
    overdue.show(late.map(({ site_id, ...row }) => ({ labels: { site: sites(site_id) }, value: row.overdue })));
  },
});
