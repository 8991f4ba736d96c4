import { ALLOCATION_STATUSES, type AllocationStatus } from "../../../shared/allocation-status.ts";
import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";
import { siteLabel } from "./site-names.ts";

const allocations = gauge({
  name: "muster_allocations",
  help: "Allocations that have not ended, by site and status.",
  labels: { site: siteLabel, status: ALLOCATION_STATUSES },
  told: "database",
});
const stuck = gauge({
  name: "muster_allocations_with_problem",
  help: "Allocations that the hub could not continue at its last try, so that a person must look.",
  labels: { site: siteLabel },
  told: "database",
});

type Row = { site_id: string | null; status: AllocationStatus; n: number; stuck: number };

export const allocationGauges = gaugeGroup({
  name: "allocations",
  families: [allocations, stuck],
  collect: async (db, sites) => {
    const { rows } = await db.execute<Row>(sql`
      select site_id, status, count(*)::int as n, count(problem)::int as stuck
      from allocations where status <> 'ended' group by 1, 2`);
    allocations.show(rows.map(({ site_id, status, n }) => ({ labels: { site: sites(site_id), status }, value: n })));
    stuck.show(
      rows.flatMap((row) => (row.stuck === 0 ? [] : [{ labels: { site: sites(row.site_id) }, value: row.stuck }])),
    );
  },
});
