import { CREDENTIAL_WARNINGS } from "../../../shared/events.ts";
import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const warned = gauge({
  name: "muster_credentials_warned",
  help: "MAAS tokens and BMC logins of sites about which the hub warns: their use fails, or nothing has used them for long.",
  labels: { site: siteLabel, warning: CREDENTIAL_WARNINGS },
  told: "database",
});

type Row = { site_id: string; warning: (typeof CREDENTIAL_WARNINGS)[number]; n: number };

export const credentialGauges = gaugeGroup({
  name: "credentials",
  families: [warned],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(sql`
      select site_id, warned_of as warning, count(*)::int as n from maas_credential_uses
      where warned_of is not null group by 1, 2`);
    warned.show(rows.map(({ site_id, warning, n }) => ({ labels: { site: sites(site_id), warning }, value: n })));
  },
});
