import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel, skuLabel } from "./site-names.ts";

const nodes = gauge({
  name: "muster_nodes",
  help: "Nodes by status, site and SKU, without deleted nodes.",
  labels: { status: NODE_STATUSES, site: siteLabel, sku: skuLabel },
  told: "database",
});

type Row = { status: (typeof NODE_STATUSES)[number]; site_id: string | null; sku: string; n: number };

export const nodeGauges = gaugeGroup({
  name: "nodes",
  families: [nodes],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(sql`
      select status, site_id, sku, count(*)::int as n from nodes where status <> 'deleted'
      group by 1, 2, 3 order by 2, 3, 1`);
    nodes.show(
      rows.map(({ status, site_id, sku, n }) => ({ labels: { status, site: sites(site_id), sku }, value: n })),
    );
  },
});
