import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { LIFECYCLE_COLUMNS } from "../../../shared/api/node-lifecycle.ts";
import type { DriftDetails } from "../../../shared/drift.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { ONBOARDING_STAGES } from "../../../shared/workflow-status.ts";
import { addSchedulableNode, SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { type ApiAnswer, crawlApi } from "../../support/crawl-api.ts";
import { addActiveNode } from "../../support/site-nodes.ts";
import { seedTroubledFleet } from "../../support/troubled-fleet.ts";
import { storeUnsignedRecord } from "../../support/unsigned-record.ts";

const READS = ROUTES.filter((route) => route.method === "GET" && route.stream === undefined);

const isOf = (path: string, asked: string): boolean =>
  new RegExp(`^${path.replace(/\{\w+\}/g, "[^/?]+")}([?]|$)`).test(asked);

const DRIFT: DriftDetails = {
  rule: "hardware_failure",
  severity: "high",
  action: "none",
  maas_status: "Broken",
  maas_status_code: 8,
  expected: "Deployed",
  message: "Its machine is broken",
  detected_at: "2026-01-01T00:00:00.000Z",
  held_back: null,
};

/** Fills the fields that the SQL of the test fleet leaves empty, with what the API would have written. */
async function mend(api: ApiHarness): Promise<void> {
  const { pool } = api.database.database;
  const { rows } = await pool.query<{ id: string }>(
    "update maas_sites set upstream_dns_servers = '{10.0.0.53}' returning id",
  );
  for (const { id } of rows) {
    const profile = await api.ask("POST", `/api/v1/admin/maas-sites/${id}/profiles`, { name: "default" });
    await pool.query("update maas_sites set default_profile_id = $2 where id = $1", [id, profile.body.id]);
  }
  await pool.query("update workflows set stage = $1", [ONBOARDING_STAGES[0]]);
  await pool.query("update node_maas_state set drift_details = $1", [JSON.stringify(DRIFT)]);
}

/** Adds items until each list of the API has at least two, because the test fleet has fewer in some lists. */
async function addToLists(api: ApiHarness): Promise<void> {
  const { pool } = api.database.database;
  const post = async (path: string, body: object): Promise<void> => {
    const { status, problem } = await api.ask("POST", `/api/v1/admin${path}`, body);
    expect(status, `${path} ${JSON.stringify(problem)}`).toBeLessThan(300);
  };
  const { siteId, profileId, skuId } = await seedApi(api, "dc9");
  await seedApi(api, "dc10");
  await post(`/maas-sites/${siteId}/profiles`, { name: "second" });
  const row = (rail: number) => ({
    hostname: "c07u41",
    interface: `rail${rail}`,
    ipv4_cidr: `172.30.0.${rail * 2 + 1}/31`,
  });
  await post(`/maas-sites/${siteId}/roce-assignments`, { items: [row(0), row(1)] });
  await pool.query(
    "insert into maas_power_credential_overrides (site_id, selector_type, selector_value, vault_path) select $1, 'hostname', 'h' || n, 'kv/more/' || n from generate_series(1, 2) n",
    [siteId],
  );
  for (const n of [1, 2]) {
    const nodes = [{ hostname: `c07u4${n}`, ipmi_ip: `10.0.9.4${n}` }];
    await post("/onboardings/batch", { site_id: siteId, profile_id: profileId, sku_id: skuId, nodes });
  }
  const { rows } = await pool.query<{ id: string }>("select id from nodes order by id limit 2");
  for (const { id } of rows) await post(`/nodes/${id}/drain`, { reason: "to be read" });
  await pool.query(
    "insert into webhook_deliveries (webhook_id, event_seq, state, attempts) select id, 100, 'pending', 0 from webhooks",
  );
  for (const { id } of rows) await post(`/nodes/${id}/cordon`, { reason: "to be read" });
  for (const hostname of ["c08u41", "c08u42"]) {
    const host = { siteId: SiteId.parse(siteId), hostname, sku: skuId };
    const id = await api.database.database.inTx((tx) => addSchedulableNode(tx, host));
    await post("/allocations", { node_id: id, tenant: hostname, login_user: `u${hostname}`, ssh_keys: [SSH_KEY] });
  }
  for (const hostname of ["c09u41", "c09u42"]) {
    const node = await api.database.database.inTx((tx) =>
      addActiveNode(tx, { siteId: SiteId.parse(siteId), hostname }),
    );
    const operation = { mode: "drain", reason: "to be read" };
    await post("/decommissions/batch", { site_id: siteId, operation, node_ids: [node] });
  }
  for (const { id } of rows) await storeUnsignedRecord(api.database, NodeId.parse(id));
}

/** The schema of one page of a list in the API: a cursor and one list of items. */
const Listed = z.looseObject({ next_cursor: z.string().nullable() });
const itemsOf = (body: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Object.values(Listed.parse(body)).find((value) => Array.isArray(value)) as [];
const keysOf = ({ query }: (typeof READS)[number]): string[] =>
  query instanceof z.ZodObject ? Object.keys(query.shape) : [];
const LISTS = READS.filter((route) => route.produces === undefined && keysOf(route).includes("cursor"));

describe("every route that reads", () => {
  let api: ApiHarness;
  let answers: readonly ApiAnswer[];
  beforeAll(async () => {
    api = await startApi();
    const { pool } = api.database.database;
    await seedTroubledFleet(pool, 3);
    await mend(api);
    await addToLists(api);
    answers = await crawlApi(await api.listen(), api.admin, pool);
  });
  afterAll(() => api.close());

  it("is requested for something that exists", () => {
    expect(READS.filter(({ path }) => !answers.some((one) => isOf(path, one.path))).map(({ path }) => path)).toEqual(
      [],
    );
  });

  /** Returns the paths of a route that the test has requested, each with all items of the list at the path. */
  async function listsOf(route: (typeof READS)[number]) {
    const paths = [
      ...new Set(answers.filter((one) => isOf(route.path, one.path)).map(({ path }) => path.split("?", 1)[0] ?? "")),
    ];
    return Promise.all(paths.map(async (path) => ({ path, all: await pagesOf(path, "limit=200") })));
  }
  async function pagesOf(path: string, query: string) {
    const items: Readonly<Record<string, unknown>>[] = [];
    let cursor = "";
    for (let pages = 0; pages < 200; pages += 1) {
      const answer = await api.ask("GET", `${path}?${query}${cursor}`);
      expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
      items.push(...itemsOf(answer.body));
      const next = Listed.parse(answer.body).next_cursor;
      if (next === null) return items;
      cursor = `&cursor=${encodeURIComponent(next)}`;
    }
    throw new Error(`${path} has no last page`);
  }

  it.each(LISTS.map((route) => [route.operationId, route] as const))(
    "%s gives the same list in pages of one item as in one page",
    async (_, route) => {
      const lists = await listsOf(route);
      const most = Math.max(...lists.map(({ all }) => all.length));
      expect(most, "items to page through; the world of this file makes them").toBeGreaterThan(1);
      for (const { path, all } of lists) expect(await pagesOf(path, "limit=1")).toEqual(all);
    },
  );

  it.each(LISTS.map((route) => [route.operationId, route] as const))(
    "%s answers the items of a filter, and no others",
    async (_, route) => {
      for (const { path, all } of await listsOf(route))
        for (const key of keysOf(route).filter((name) => name !== "cursor" && name !== "limit"))
          for (const value of new Set(all.map((item) => item[key]).filter((one) => typeof one === "string"))) {
            const some = await pagesOf(path, `limit=200&${key}=${encodeURIComponent(value)}`);
            expect(some, `${key}=${value}`).toEqual(all.filter((item) => item[key] === value));
          }
    },
  );

  it.each(READS.map((route) => [route.operationId, route] as const))(
    "%s answers as its schema promises",
    (_, route) => {
      const own = answers.filter((one) => isOf(route.path, one.path));
      expect(own.filter(({ status }) => status !== route.status)).toEqual([]);
      for (const { text } of own) {
        if (route.produces === "text/html") {
          expect(text).toContain("content-type: text/html");
          expect(text).toContain("\n<!doctype html>");
          continue;
        }
        if (route.produces === "text/csv") {
          expect(text).toContain("content-type: text/csv");
          expect(text).toContain(`\n${LIFECYCLE_COLUMNS.join(",")}\r\n`);
          continue;
        }
        const answer = JSON.parse(text.slice(text.indexOf("\n{") + 1));
        // The parser of the route's schema drops unknown fields, so an undocumented field makes the comparison fail.
        expect(route.response.parse(answer)).toEqual(answer);
      }
    },
  );
});
