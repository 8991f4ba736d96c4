import { sql } from "../../hub/db/orm.ts";
import { countFacets } from "../../hub/db/queries/node-facets.ts";
import type { NodeFilter } from "../../hub/db/queries/node-filter.ts";
import { countNodes, listNodeRows } from "../../hub/db/queries/node-reads.ts";
import type { NodeSort } from "../../shared/api/node-filter.ts";
import { type Bench, percentile, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { seedFleet } from "./seed-fleet.ts";

const NODES = 10_000;
const ROUNDS = 60;
const PAGE = 50;

interface Asked {
  readonly what: string;
  readonly filter: NodeFilter;
  readonly sort?: NodeSort;
}

const LISTS: readonly Asked[] = [
  { what: "no filter, by hostname", filter: {} },
  { what: "two statuses, by hostname", filter: { statuses: ["quarantined", "offline"] } },
  { what: "schedulable nodes, by hostname", filter: { schedulable: true } },
  { what: "unschedulable nodes, last contact first", filter: { schedulable: false }, sort: "-last_agent_contact_at" },
  { what: "one SKU and rack, by location", filter: { skus: ["h100"], rack: "r17" }, sort: "location" },
  {
    what: "a failure class, latest change first",
    filter: { failureClasses: ["upstream_transient"] },
    sort: "-updated_at",
  },
  { what: "a condition, by status", filter: { condition: "agent.healthy:False" }, sort: "status" },
  { what: "a search for a part of a name", filter: { search: "0421" } },
  { what: "a search for a MAC address", filter: { search: "02:00:00:00:10:01" } },
];

async function timed(work: () => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now();
    await work();
    took.push(performance.now() - begun);
  }
  return took;
}

const figure = (name: string, took: readonly number[]): Figure => ({
  name,
  value: percentile(took, 0.99),
  unit: "ms",
  note: `p99 of ${ROUNDS}; p50 ${percentile(took, 0.5).toFixed(1)} ms`,
});

/** Measures the lists of nodes, their totals and their facets on a fleet of 10,000 nodes in the hub's own database. */
export const measureFleetLists = (stateDir: string): Promise<Figure[]> =>
  withDatabase(stateDir, async (bench: Bench) => {
    const { db } = bench.database;
    await seedFleet(db, NODES);
    await db.execute(sql`analyze`);
    const figures: Figure[] = [];
    for (const { what, filter, sort = "hostname" } of LISTS) {
      const list = () => listNodeRows(db, filter, { limit: PAGE, after: null, sort });
      const [first] = (await list()).slice(-1);
      if (first === undefined) throw new Error(`the seeded fleet has no node for: ${what}`);
      figures.push(figure(`nodes, ${what}`, await timed(list)));
    }
    figures.push(figure("total of schedulable nodes", await timed(() => countNodes(db, { schedulable: true }))));
    figures.push(figure("facets of all nodes", await timed(() => countFacets(db, {}))));
    figures.push(
      figure("facets of two statuses", await timed(() => countFacets(db, { statuses: ["active", "offline"] }))),
    );
    return figures;
  });
