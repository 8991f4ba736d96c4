import { sql } from "../../db/orm.ts";
import { gauge, upTo } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const drifted = gauge({
  name: "muster_nodes_with_drift",
  help: "Nodes whose machine or host differs from Muster's record, by rule; drift that a person has acknowledged is left out.",
  labels: { site: siteLabel, rule: upTo(24) },
  told: "database",
});
const oldest = gauge({
  name: "muster_drift_oldest_seconds",
  help: "Age of the oldest drift that nobody has resolved or acknowledged; 0 if there is none.",
  labels: {},
  told: "database",
});

type Row = { site_id: string; rule: string; n: number; oldest: number | null };

export const driftGauges = gaugeGroup({
  name: "drift",
  families: [drifted, oldest],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(sql`
      select m.site_id, m.drift_details->>'rule' as rule, count(*)::int as n,
        max(extract(epoch from now() - (m.drift_details->>'detected_at')::timestamptz))::float8 as oldest
      from node_maas_state m where m.drift_detected and m.drift_acknowledged is null group by 1, 2`);
    drifted.show(rows.map(({ site_id, rule, n }) => ({ labels: { site: sites(site_id), rule }, value: n })));
    oldest.show([{ labels: {}, value: Math.max(0, ...rows.map((row) => row.oldest ?? 0)) }]);
  },
});
