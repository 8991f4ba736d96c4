import { z } from "zod";
import { Breaker } from "../../../shared/api/reconciliation.ts";
import { Timestamp } from "../../../shared/api/values.ts";
import { Json } from "../../../shared/json.ts";
import { sql } from "../../db/orm.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { toBreaker } from "../../db/queries/drift-reads.ts";
import { listBreakers } from "../../db/queries/reconciler-breakers.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_BREAKERS = 100;
const MOST_DRIFTS = 100;

const Bindings = z.strictObject({
  site_id: z.uuid(),
  nodes: z.int(),
  drifted: z.int(),
  acknowledged: z.int(),
  quarantined: z.int(),
  due: z.int(),
  oldest_due_at: Timestamp.nullable(),
  last_reconciled_at: Timestamp.nullable(),
});
const Drift = z.strictObject({
  node_id: z.uuid(),
  site_id: z.uuid(),
  maas_system_id: z.string(),
  drift_details: Json,
  acknowledged: Json,
  quarantined_at: Timestamp.nullable(),
});

async function readBindings(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Bindings> & { of: number }>(sql`
    select site_id, count(*)::int as nodes, (count(*) filter (where drift_detected))::int as drifted,
      count(drift_acknowledged)::int as acknowledged, count(quarantined_at)::int as quarantined,
      count(reconcile_due_at)::int as due, ${iso("min(reconcile_due_at)")} as oldest_due_at,
      ${iso("max(last_reconciled_at)")} as last_reconciled_at, ${OF}
    from node_maas_state group by 1 order by 3 desc, 1 limit ${MOST_BREAKERS}`);
  return bounded("sites", rows);
}

async function readDrifts(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Drift> & { of: number }>(sql`
    select node_id, site_id, maas_system_id, drift_details, drift_acknowledged as acknowledged,
      ${iso("quarantined_at")} as quarantined_at, ${OF}
    from node_maas_state where drift_detected or drift_acknowledged is not null or quarantined_at is not null
    order by drift_details ->> 'detected_at' desc nulls last, node_id limit ${MOST_DRIFTS}`);
  return bounded("drifts", rows);
}

export const reconciliation = databaseSection({
  name: "reconciliation",
  about: "Nodes that differ from MAAS, and the breakers that stop status changes of too many nodes at once",
  data: z.strictObject({ sites: z.array(Bindings), drifts: z.array(Drift), breakers: z.array(Breaker) }),
  read: async (tx) => {
    const sites = await readBindings(tx);
    const drifts = await readDrifts(tx);
    const now = await databaseNow(tx);
    const all = (await listBreakers(tx)).map((row) => toBreaker(row, now));
    const isOpen = ({ state }: Breaker): number => (state === "closed" ? 0 : 1);
    const breakers = all.toSorted((a, b) => isOpen(b) - isOpen(a)).slice(0, MOST_BREAKERS);
    const left = { list: "breakers", shown: breakers.length, of: all.length };
    return {
      data: { sites: sites.shown, drifts: drifts.shown, breakers },
      leftOut: [...sites.leftOut, ...drifts.leftOut, ...(all.length > breakers.length ? [left] : [])],
    };
  },
});
