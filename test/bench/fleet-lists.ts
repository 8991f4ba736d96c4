import { sql } from "../../hub/db/orm.ts";
import { countFacets } from "../../hub/db/queries/node-facets.ts";
import type { NodeFilter } from "../../hub/db/queries/node-filter.ts";
import { countNodes, listNodeRows } from "../../hub/db/queries/node-reads.ts";
import { schedulableNodes } from "../../hub/db/queries/schedulable-nodes.ts";
import { maasSiteProfiles } from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";
import { profileColumns } from "../../hub/http/routes/profile-columns.ts";
import type { NodeSort } from "../../shared/api/node-filter.ts";
import { ProfileCreate } from "../../shared/api/profiles.ts";
import { SiteId } from "../../shared/ids.ts";
import { type Bench, percentile, withDatabase } from "./bench-hubs.ts";
import { databaseCpuMs } from "./database-time.ts";
import type { Figure } from "./figure.ts";
import { seedFleet } from "./seed-fleet.ts";

const NODES = 10_000;
const ROUNDS = 60;
const PAGE = 50;

interface Asked {
  readonly what: string;
  readonly filter: NodeFilter;
  readonly sort?: NodeSort;
  /** The number of nodes in the list's first page; without it, any number but zero. */
  readonly found?: number;
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
  { what: "a search for a serial number that only MAAS knows", filter: { search: "sys-4097" }, found: 1 },
];

/** Measures the time of each round, and the processor time that the database needs for a round. */
async function measured(db: Db, name: string, work: () => Promise<unknown>): Promise<Figure> {
  await work();
  const took: number[] = [];
  const before = await databaseCpuMs(db);
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now();
    await work();
    took.push(performance.now() - begun);
  }
  const used = ((await databaseCpuMs(db)) - before) / ROUNDS;
  const note = `p99 of ${ROUNDS}; p50 ${percentile(took, 0.5).toFixed(1)} ms; processor time of the database ${used.toFixed(1)} ms`;
  return { name, value: percentile(took, 0.99), unit: "ms", note };
}

/** Measures the lists of nodes, their totals and their facets on a fleet of 10,000 nodes in the hub's own database. */
export const measureFleetLists = (stateDir: string): Promise<Figure[]> =>
  withDatabase(stateDir, async ({ database: { db } }: Bench) => {
    await seedFleet(db, NODES);
    await db.execute(sql`vacuum analyze`);
    const figures: Figure[] = [];
    for (const asked of LISTS) figures.push(await measureList(db, asked));
    figures.push(await measured(db, "total of schedulable nodes", () => countNodes(db, { schedulable: true })));
    figures.push(await measured(db, "facets of all nodes", () => countFacets(db, {})));
    figures.push(
      await measured(db, "facets of two statuses", () => countFacets(db, { statuses: ["active", "offline"] })),
    );
    return [...figures, ...(await measureRareNodes(db)), ...(await measureReadinessPolicy(db))];
  });

/** Measures the list and the total of schedulable nodes while the profile of every node has a readiness policy with four requirements in two groups. */
async function measureReadinessPolicy(db: Db): Promise<Figure[]> {
  await db.execute(sql`delete from tasks where idempotency_key like 'closed-%'`);
  const asks = (type: string) => ({ type, status: "True", max_age_seconds: 3_600, deadline_seconds: 3_600 });
  const policy = [
    { all: [asks("agent.healthy"), asks("os.booted")] },
    { any: [asks("fabric.ready"), asks("cloud_init.done")] },
  ];
  const body = ProfileCreate.parse({ name: "policy", readiness_policy: policy });
  const siteId = SiteId.parse("aaaaaaaa-0000-4000-8000-000000000000");
  const [profile] = await db
    .insert(maasSiteProfiles)
    .values({ ...profileColumns(body), siteId })
    .returning();
  await db.execute(sql`update node_onboardings set profile_id = ${profile?.id}`);
  await db.execute(sql`vacuum analyze`);
  const what = "schedulable nodes, with a readiness policy of four requirements";
  return [
    await measureList(db, { what: `${what}, by hostname`, filter: { schedulable: true } }),
    await measured(db, `total of ${what}`, () => countNodes(db, { schedulable: true })),
  ];
}

/**
 * Measures the lists of nodes that few or no nodes match. The database must look at every node for them, and most nodes differ from the wanted ones only
 * in the last fact that decides.
 */
async function measureRareNodes(db: Db): Promise<Figure[]> {
  await db.execute(sql`update allocations set status = 'ended', ended_at = now()`);
  const rare: Asked = {
    what: "schedulable is false for 200 of 9,250 active nodes",
    filter: { schedulable: false, statuses: ["active"] },
  };
  const figures = [await measureList(db, rare)];
  const total = () => countNodes(db, { schedulable: true });
  figures.push(await measured(db, "total of schedulable nodes, 9,050 of them", total));
  for (const left of [5, 0]) {
    // The drain of all other hosts is the newest task that closes or opens their hosts, and no undrain has followed it.
    await db.execute(sql`insert into tasks (node_id, type, input, state, idempotency_key, attempts, deadline)
      select id, 'node.drain', '{}', 'succeeded', ${`closed-${left}`}, 1, now() from (
        select n.id from nodes n where n.id in ${schedulableNodes} order by n.hostname offset ${left}) closed`);
    const what = `schedulable is true for ${left === 0 ? "no node" : `${left} of 9,250 active nodes`}`;
    figures.push(await measureList(db, { what, filter: { schedulable: true }, found: left }));
  }
  return figures;
}

async function measureList(db: Db, { what, filter, sort = "hostname", found }: Asked): Promise<Figure> {
  const list = () => listNodeRows(db, filter, { limit: PAGE, after: null, sort });
  const nodes = (await list()).length;
  if (found === undefined ? nodes === 0 : nodes !== found)
    throw new Error(`the seeded fleet has ${nodes} nodes for: ${what}`);
  return measured(db, `nodes, ${what}`, list);
}
