/**
 * The filters, orders, totals and facets of the list of nodes, on generated fleets. The SQL for `schedulable` must decide as the pure function does,
 * and facets, totals and pages must agree with the whole list.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../hub/db/orm.ts";
import { countFacets } from "../../hub/db/queries/node-facets.ts";
import type { NodeFilter } from "../../hub/db/queries/node-filter.ts";
import { countNodes, listNodeRows, type NodeRow } from "../../hub/db/queries/node-reads.ts";
import { schedulability } from "../../hub/node/schedulable.ts";
import { schedulingFactsOf } from "../../hub/node/scheduling-facts.ts";
import { FACETS, type FacetName, NodeSort } from "../../shared/api/node-filter.ts";
import { FAILURE_CLASSES } from "../../shared/failures.ts";
import { ProfileId, SiteId } from "../../shared/ids.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { type ApiHarness, seedApi, startApi } from "../support/api-harness.ts";
import { READINESS_POLICIES } from "../support/generated-conditions.ts";
import { bmcOf, type FleetWorld, generatedFleet, macOf, serialOf, writeFleet } from "../support/generated-fleet.ts";

const SIZE = 60;
const POLICIES = [
  { turnover_mode: "soft_reset", readiness_policy: READINESS_POLICIES[0] },
  { turnover_mode: "reimage" },
  { turnover_mode: "soft_reset", gpu_claim_level: "overwritten", readiness_policy: READINESS_POLICIES[1] },
  { turnover_mode: "reimage", gpu_claim_level: "challenge_verified" },
];

let api: ApiHarness;
let world: FleetWorld;
let site: SiteId;
beforeAll(async () => {
  api = await startApi();
  const sites: { siteId: SiteId; profiles: ProfileId[] }[] = [];
  for (const name of ["dc1", "dc2"]) {
    const { siteId } = await seedApi(api, name);
    const profiles: ProfileId[] = [];
    for (const [index, policy] of POLICIES.entries()) {
      const made = await api.ask("POST", `/api/v1/admin/maas-sites/${siteId}/profiles`, {
        name: `p${index}`,
        ...policy,
      });
      profiles.push(ProfileId.parse(made.body.id));
    }
    sites.push({ siteId: SiteId.parse(siteId), profiles });
  }
  await api.ask("POST", "/api/v1/admin/skus", { id: "cpu", gpu_vendor: "none", gpus_total: 0 });
  world = { sites, skus: ["sku-dc1", "sku-dc2", "cpu"] };
  site = sites[0]?.siteId as SiteId;
});
afterAll(() => api?.close());

const db = () => api.database.database.db;

async function stage(facts: Parameters<typeof writeFleet>[2]["facts"], prefix = "n"): Promise<void> {
  await db().execute(sql`truncate nodes, node_conditions, node_maas_state, node_onboardings, workflows, allocations, node_health_overrides,
    node_baselines, node_inventories, tasks cascade`);
  await api.database.database.inTx((tx) => writeFleet(tx, world, { facts, prefix }));
}
const allRows = (filter: NodeFilter = { deleted: true }): Promise<NodeRow[]> =>
  listNodeRows(db(), filter, { limit: 1_000, after: null });
const idsOf = (rows: readonly NodeRow[]): string[] => rows.map(({ node }) => node.id);
async function idsInPages(filter: NodeFilter): Promise<string[]> {
  const ids: string[] = [];
  for (let after: readonly string[] | null = null; ; ) {
    const rows: NodeRow[] = await listNodeRows(db(), filter, { limit: 40, after });
    ids.push(...idsOf(rows));
    if (rows.length < 40) return ids;
    after = rows.at(-1)?.cursor ?? null;
  }
}
const verdictOf = (row: NodeRow): boolean => schedulability(schedulingFactsOf(row, false), row.conditions).schedulable;

describe("the filter schedulable", () => {
  it("finds exactly the nodes that the pure function calls schedulable, on every generated fleet", async () => {
    let schedulable = 0;
    await fc.assert(
      fc.asyncProperty(generatedFleet(SIZE), async (facts) => {
        await stage(facts);
        const rows = await allRows();
        const expected = idsOf(rows.filter(verdictOf));
        schedulable += expected.length;
        expect(idsOf(await allRows({ deleted: true, schedulable: true }))).toEqual(expected);
        const barred = idsOf(rows.filter((row) => !verdictOf(row)));
        expect(idsOf(await allRows({ deleted: true, schedulable: false }))).toEqual(barred);
        expect(await idsInPages({ deleted: true, schedulable: true })).toEqual(expected);
        expect(await idsInPages({ deleted: true, schedulable: false })).toEqual(barred);
      }),
      { numRuns: 8, endOnFailure: true },
    );
    expect(schedulable, "generated fleets with nodes that may take work").toBeGreaterThan(20);
  });
});

const filter: fc.Arbitrary<NodeFilter> = fc.record(
  {
    statuses: fc.uniqueArray(fc.constantFrom(...NODE_STATUSES), { minLength: 1, maxLength: 4 }),
    schedulable: fc.boolean(),
    skus: fc.constantFrom(["sku-dc1"], ["sku-dc1", "unknown"], ["cpu"]),
    room: fc.constantFrom("A", "B"),
    rack: fc.constantFrom("r1", "r 3"),
    hostnamePrefix: fc.constantFrom("n1", "n2"),
    failureClasses: fc.uniqueArray(fc.constantFrom(...FAILURE_CLASSES), { minLength: 1, maxLength: 5 }),
    condition: fc.constantFrom("agent.healthy:True", "agent.connected:Unknown", "network.roce:False"),
    search: fc.constantFrom("1", bmcOf(1), macOf(3), serialOf(4)),
    deleted: fc.boolean(),
  },
  { requiredKeys: [] },
);

/** The filter that has the facet's value in place of the facet's own filter. */
function withValue(given: NodeFilter, facet: FacetName, value: string): NodeFilter {
  const chosen: Readonly<Record<FacetName, NodeFilter>> = {
    status: { statuses: [value as (typeof NODE_STATUSES)[number]] },
    schedulable: { schedulable: value === "true" },
    site_id: { siteId: value as SiteId },
    sku_id: { skus: [value] },
    room: { room: value },
    rack: { rack: value },
    failure_class: { failureClasses: [value] },
    condition: { condition: value },
  };
  return { ...given, ...chosen[facet] };
}

describe("facets and totals", () => {
  it("agree with the lists that a choice of their values gives, for every generated filter", async () => {
    await fc.assert(
      fc.asyncProperty(
        generatedFleet(SIZE),
        fc.array(filter, { minLength: 6, maxLength: 6 }),
        async (facts, filters) => {
          await stage(facts);
          for (const given of [
            {},
            ...filters,
            { reach: { sites: [site], tenant: null } },
            { reach: { sites: [], tenant: null } },
          ]) {
            const { total, facets } = await countFacets(db(), given);
            expect(total).toBe((await allRows(given)).length);
            expect(await countNodes(db(), given)).toBe(total);
            for (const facet of FACETS)
              for (const { value, count } of facets[facet].values)
                expect(await countNodes(db(), withValue(given, facet, value)), `${facet} ${value}`).toBe(count);
          }
        },
      ),
      { numRuns: 4 },
    );
  });

  it("leave out no value that a node has", async () => {
    const [facts = []] = fc.sample(generatedFleet(SIZE), { numRuns: 1, seed: 7 });
    await stage(facts);
    const { facets } = await countFacets(db(), {});
    const rows = await allRows();
    const values = (facet: FacetName) => facets[facet].values.map(({ value }) => value).sort();
    const had = (of: (row: NodeRow) => string | null) =>
      [...new Set(rows.map(of).filter((value) => value !== null))].sort();
    expect(values("status")).toEqual(had(({ node }) => node.status));
    const living = rows.filter(({ node }) => node.status !== "deleted");
    expect(values("rack")).toEqual(
      [...new Set(living.map(({ node }) => node.rack).filter((one) => one !== null))].sort(),
    );
    expect(facets.sku_id.values.reduce((sum, { count }) => sum + count, 0)).toBe(living.length);
    expect(facets.schedulable.values.reduce((sum, { count }) => sum + count, 0)).toBe(living.length);
  });
});

describe("pages", () => {
  beforeAll(async () => {
    const [facts = []] = fc.sample(generatedFleet(SIZE), { numRuns: 1, seed: 11 });
    await stage(facts);
    await db().execute(
      sql`update nodes set last_agent_contact_at = now() - make_interval(mins => (hashtext(hostname) % 7)) where unit > 9`,
    );
  });
  it.each(NodeSort.options)(
    "in the order %s give each node once, in the order of the whole list",
    async (sort) => {
      const whole = await listNodeRows(db(), {}, { limit: 1_000, after: null, sort });
      const paged: NodeRow[] = [];
      for (let after: readonly string[] | null = null; ; ) {
        const rows: NodeRow[] = await listNodeRows(db(), {}, { limit: 7, after, sort });
        paged.push(...rows);
        if (rows.length < 7) break;
        after = rows.at(-1)?.cursor ?? null;
      }
      expect(idsOf(paged)).toEqual(idsOf(whole));
      expect(whole.length).toBeGreaterThan(40);
      const reversed = NodeSort.parse(sort.startsWith("-") ? sort.slice(1) : `-${sort}`);
      const back = await listNodeRows(db(), {}, { limit: 1_000, after: null, sort: reversed });
      expect(idsOf(back)).toEqual(idsOf(whole).toReversed());
    },
    60_000,
  );
});
