import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";

const paused = gauge({
  name: "muster_batches_paused",
  help: "Batches that a person or too many failures have paused, and that still have operations to begin.",
  labels: { by: ["person", "failures"] },
  told: "database",
});
const hubs = gauge({
  name: "muster_hubs_connected",
  help: "Hubs that hold a connection to the database.",
  labels: {},
  told: "database",
});

type Row = { by_person: number; by_failures: number; hubs: number };

export const batchGauges = gaugeGroup({
  name: "batches",
  families: [paused, hubs],
  collect: async (db) => {
    const { rows } = await db.execute<Row>(sql`
      select (count(*) filter (where b.paused_by is not null))::int as by_person,
        (count(*) filter (where b.paused_by is null))::int as by_failures,
        (select count(distinct application_name)::int from pg_stat_activity
          where datname = current_database() and application_name like 'muster-hub %') as hubs
      from onboarding_batches b where b.paused_at is not null
        and exists (select from workflows w where w.batch_id = b.id and w.status = 'pending')`);
    const [row] = rows;
    if (row === undefined) return;
    paused.show([
      { labels: { by: "person" }, value: row.by_person },
      { labels: { by: "failures" }, value: row.by_failures },
    ]);
    hubs.show([{ labels: {}, value: row.hubs }]);
  },
});
