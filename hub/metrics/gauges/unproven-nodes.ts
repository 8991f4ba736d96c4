import { CONDITION_TYPES, type ConditionRule } from "../../../shared/condition-types.ts";
import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const withoutEvidence = gauge({
  name: "muster_nodes_active_without_evidence",
  help: "Nodes with the status active for whose present generation nobody has ever reported a condition that a node in service needs, such as os.booted or agent.healthy. The hub gives such a node no new work.",
  labels: { site: siteLabel },
  told: "database",
});

const RULES = Object.entries<ConditionRule>(CONDITION_TYPES).filter(([, { bars }]) => bars === "missing_or_not_true");
const NEEDED = RULES.map(([type]) => type);
/** The number of conditions that a node needs although its host runs no agent. */
const WITHOUT_AGENT = RULES.filter(([, { needsAgent }]) => needsAgent !== true).length;

export const unprovenNodeGauges = gaugeGroup({
  name: "nodes_without_evidence",
  families: [withoutEvidence],
  collect: async (db, sites) => {
    const { rows } = await db.execute<{ site_id: string | null; n: number }>(sql`
      select n.site_id, count(*)::int as n from nodes n
      left join (
        select node_id, generation, count(*) as reported from node_conditions
        where type = any(${sql.param(NEEDED)}::text[]) group by 1, 2) c
        on c.node_id = n.id and c.generation = n.generation
      where n.status = 'active' and coalesce(c.reported, 0) < case when n.runs_agent then ${NEEDED.length}::int else ${WITHOUT_AGENT}::int end
      group by 1`);
    withoutEvidence.show(rows.map(({ site_id, n }) => ({ labels: { site: sites(site_id) }, value: n })));
  },
});
