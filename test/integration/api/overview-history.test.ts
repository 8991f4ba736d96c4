/** The history of the fleet: the samples that the hubs take, and the points that the API makes of them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sampleFleet } from "../../../hub/db/queries/fleet-samples.ts";
import type { OverviewHistory } from "../../../shared/api/overview-history.ts";
import { SiteId } from "../../../shared/ids.ts";
import { addSchedulableNode } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { addActiveNode } from "../../support/site-nodes.ts";

describe("the history of the fleet", () => {
  let api: ApiHarness;
  let sites: [string, string];
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    const other = await seedApi(api, "dc2");
    sites = [seeded.siteId, other.siteId];
    const { inTx, pool } = api.database.database;
    await inTx((tx) => addSchedulableNode(tx, { siteId: SiteId.parse(sites[1]), hostname: "d1", sku: other.skuId }));
    for (const hostname of ["c1", "c2", "c3", "c4"])
      await inTx((tx) => addActiveNode(tx, { siteId: SiteId.parse(sites[0]), hostname }));
    await pool.query("update nodes set status = 'quarantined' where hostname = 'c3'");
    await pool.query("update nodes set status = 'deleted' where hostname = 'c4'");
    const { siteId: site_id, profileId: profile_id, skuId: sku_id } = seeded;
    const body = { site_id, profile_id, sku_id, hostname: "c9", ipmi_ip: "10.0.0.1" };
    expect((await api.ask("POST", "/api/v1/admin/onboardings", body)).status).toBe(202);
    await pool.query("update workflows set status = 'failed_retryable'");
  });
  afterAll(() => api.close());
  beforeEach(() => api.database.database.pool.query("delete from fleet_samples"));

  const history = async (query = "", token?: string): Promise<OverviewHistory> => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await api.ask("GET", `/api/v1/admin/overview/history?${query}`, undefined, headers);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
    return answer.body;
  };
  const addSample = (minutesAgo: number, site: string | null, nodes: Readonly<Record<string, number>>, waiting = 0) =>
    api.database.database.pool.query(
      `insert into fleet_samples (sampled_at, site_id, nodes, schedulable, waiting)
       values (date_bin('10 minutes', now() - make_interval(mins => $1), 'epoch'), $2, $3, 1, $4)`,
      [minutesAgo, site, nodes, waiting],
    );

  it("begins with one sample of the present ten minutes, which only one of several hubs takes", async () => {
    const { inTx } = api.database.database;
    const taken = await Promise.all([inTx(sampleFleet), inTx(sampleFleet), inTx(sampleFleet)]);
    expect(taken.toSorted()).toEqual([0, 0, 2]);
    expect(await inTx(sampleFleet)).toBe(0);
    const { step_seconds, points } = await history();
    expect(step_seconds).toBe(600);
    expect(points).toEqual([
      { at: expect.any(String), nodes: { active: 3, quarantined: 1 }, schedulable: 1, waiting: 1 },
    ]);
    expect(Date.parse(points[0]?.at ?? "") % 600_000).toBe(0);
  });

  it("is of one site, and of the sites of the caller", async () => {
    await api.database.database.inTx(sampleFleet);
    const own = { nodes: { active: 2, quarantined: 1 }, schedulable: 0, waiting: 1 };
    const others = { nodes: { active: 1 }, schedulable: 1, waiting: 0 };
    expect((await history(`site_id=${sites[0]}`)).points).toEqual([{ at: expect.any(String), ...own }]);
    expect((await history(`site_id=${sites[1]}`)).points).toEqual([{ at: expect.any(String), ...others }]);
    const reach = { sites: [SiteId.parse(sites[1])], tenant: null };
    const token = await apiToken(api.database, { name: "viewer of dc2", role: "viewer", ...reach });
    expect((await history("", token)).points).toEqual([{ at: expect.any(String), ...others }]);
    expect((await history(`site_id=${sites[0]}`, token)).points).toEqual([
      { at: expect.any(String), nodes: {}, schedulable: 0, waiting: 0 },
    ]);
  });

  it("sums the sites of each time, and shows a time in which all nodes were gone", async () => {
    await addSample(60, sites[0], { active: 4, offline: 1 }, 2);
    await addSample(60, sites[1], { active: 3 });
    await addSample(60, null, { enrolling: 1 });
    await addSample(40, sites[1], { active: 2 });
    await addSample(25 * 60, sites[0], { active: 9 });
    expect((await history()).points.map(({ at: _at, ...point }) => point)).toEqual([
      { nodes: { active: 7, offline: 1, enrolling: 1 }, schedulable: 3, waiting: 2 },
      { nodes: { active: 2 }, schedulable: 1, waiting: 0 },
    ]);
    const atFirst = await history(`site_id=${sites[0]}`);
    expect(atFirst.points.map(({ nodes }) => nodes)).toEqual([{ active: 4, offline: 1 }, {}]);
  });

  it("has the last sample of each step when it is long, at most 145 points, and refuses more than 90 days", async () => {
    await api.database.database.pool.query(
      `insert into fleet_samples (sampled_at, site_id, nodes, schedulable, waiting)
       select date_bin('10 minutes', now(), 'epoch') - make_interval(mins => 10 * n), $1, jsonb_build_object('active', n + 1), 0, 0
       from generate_series(0, 6 * 24 * 7) n`,
      [sites[0]],
    );
    const { step_seconds, points } = await history("hours=168");
    expect(step_seconds).toBe(4_200);
    expect(points.length).toBeGreaterThanOrEqual(143);
    expect(points.length).toBeLessThanOrEqual(145);
    expect(points.at(-1)?.nodes).toEqual({ active: 1 });
    const steps = points.map(({ at }) => Math.floor(Date.parse(at) / 4_200_000));
    expect(new Set(steps).size).toBe(points.length);
    // Each point but the last is the last sample before the next step begins.
    for (const { at } of points.slice(0, -1)) expect((Date.parse(at) + 600_000) % 4_200_000).toBe(0);
    expect((await api.ask("GET", "/api/v1/admin/overview/history?hours=2161")).status).toBe(400);
  });
});
