import { BREAKER_KINDS } from "../../../shared/drift.ts";
import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const open = gauge({
  name: "muster_breaker_open",
  help: "1 for each breaker that holds back status changes of a site's nodes until a person resets the breaker.",
  labels: { site: siteLabel, kind: BREAKER_KINDS },
  told: "database",
});

type Row = { site_id: string; kind: (typeof BREAKER_KINDS)[number] };

export const breakerGauges = gaugeGroup({
  name: "breakers",
  families: [open],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(
      sql`select site_id, kind from reconciler_breakers where tripped_at is not null and reset_at is null`,
    );
    open.show(rows.map(({ site_id, kind }) => ({ labels: { site: sites(site_id), kind }, value: 1 })));
  },
});
