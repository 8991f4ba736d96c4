import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const labels = { site: siteLabel };
const watched = gauge({
  name: "muster_site_watched",
  help: "1 if a hub holds the watch of the site's MAAS region, 0 if no hub does. Disabled sites are left out.",
  labels,
  told: "database",
});
const lag = gauge({
  name: "muster_site_feed_lag_seconds",
  help: "Time since the hub last read the site's MAAS region with success; since the site's creation if it never did.",
  labels,
  told: "database",
});
const failures = gauge({
  name: "muster_site_failed_polls",
  help: "Failed polls of the site's MAAS region in a row.",
  labels,
  told: "database",
});
const unreadable = gauge({
  name: "muster_site_unreadable_machines",
  help: "Machines of the site whose description in MAAS Muster cannot read.",
  labels,
  told: "database",
});

type Row = { id: string; watched: boolean; lag: number; failures: number; unreadable: number };

export const siteGauges = gaugeGroup({
  name: "sites",
  families: [watched, lag, failures, unreadable],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(sql`
      select s.id, coalesce(w.lease_owner is not null and w.lease_until > now(), false) as watched,
        extract(epoch from now() - coalesce(w.last_poll_at, s.created_at))::float8 as lag,
        coalesce(w.consecutive_failures, 0) as failures, coalesce(w.unreadable_machines, 0) as unreadable
      from maas_sites s left join maas_site_watches w on w.site_id = s.id where s.status = 'active'`);
    // All sites above the limit of label values share the label `other`, and the gauge shows the worst value of these sites.
    const worst = (of: (row: Row) => number, better: (a: number, b: number) => number) => {
      const shown = new Map<string, number>();
      for (const row of rows) {
        const site = sites(row.id);
        const known = shown.get(site);
        shown.set(site, known === undefined ? of(row) : better(known, of(row)));
      }
      return [...shown].map(([site, value]) => ({ labels: { site }, value }));
    };
    watched.show(worst((row) => (row.watched ? 1 : 0), Math.min));
    lag.show(worst((row) => row.lag, Math.max));
    failures.show(worst((row) => row.failures, Math.max));
    unreadable.show(worst((row) => row.unreadable, Math.max));
  },
});
