import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sampleFleet } from "../../../hub/db/queries/fleet-samples.ts";
import type { Route } from "../../../hub/http/route.ts";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { hasRight } from "../../../shared/api/rights.ts";
import { API_ROLES, type ApiRole, isRoleOfTenants } from "../../../shared/api/roles.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { type Answer, type ApiHarness, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { pathsOf } from "../../support/crawl-api.ts";
import { seedFullFleet } from "../../support/full-fleet.ts";

/**
 * Every reading route of the API, for every role, with tokens of each site and of each tenant (decision I3). The cases come from the list of routes,
 * so that a new route is tested without a line in this file.
 */
const READS = ROUTES.filter((route) => route.method === "GET" && route.right !== "none" && route.stream === undefined);
/** The routes that show nothing of a site or a tenant. A new route is added here only if that is true of it. */
const OPEN_TO_ALL = ["getHubStatus", "listSkus", "getSku"];

type Item = Readonly<Record<string, unknown>>;
const isNamed = ({ place }: Route): boolean => typeof place === "object";
const cases = (routes: readonly Route[]) => routes.map((route) => [route.operationId, route] as const);

describe("every route that reads, for every role", () => {
  let api: ApiHarness;
  let sites: readonly string[];
  let tenants: readonly string[];
  const siteOfNode = new Map<string, string | null>();
  const tokens = new Map<string, string>();
  beforeAll(async () => {
    api = await startApi();
    await seedFullFleet(api);
    const { pool } = api.database.database;
    const column = async (statement: string) => (await pool.query<{ v: string }>(statement)).rows.map(({ v }) => v);
    sites = await column("select id as v from maas_sites order by name");
    tenants = await column("select tenant as v from allocations union select tenant from sanitization_records");
    expect(tenants.length).toBeGreaterThan(2);
    const { rows } = await pool.query<{ id: string; site_id: string | null }>("select id, site_id from nodes");
    for (const { id, site_id } of rows) siteOfNode.set(id, site_id);
  });
  afterAll(() => api.close());

  /** Returns a token of the role for one site or for one tenant. The hub stores it at its first use in a test. */
  async function tokenOf(role: ApiRole, limit: { site?: string | undefined; tenant?: string | undefined }) {
    const name = `${role} ${limit.site ?? "all"} ${limit.tenant ?? "all"}`;
    const known = tokens.get(name);
    if (known !== undefined) return known;
    const tenant = limit.tenant ?? (isRoleOfTenants(role) ? randomUUID() : null);
    const only = limit.site === undefined ? null : [limit.site as SiteId];
    const token = await apiToken(api.database, { name, role, sites: only, tenant });
    tokens.set(name, token);
    return token;
  }
  const ask = (path: string, token: string): Promise<Answer> => {
    const authorization = `Bearer ${token}`;
    return path.endsWith("/print") || path.endsWith("/csv")
      ? api.page(path, { authorization }).then(({ status, headers }) => ({ status, headers }) as Answer)
      : api.ask("GET", path, undefined, { authorization });
  };

  it("names its place, and is open to all callers only if it shows nothing of a site", () => {
    const open = READS.filter(({ place }) => place === "everywhere").map(({ operationId }) => operationId);
    expect(open.toSorted()).toEqual(OPEN_TO_ALL.toSorted());
  });

  it.each(cases(READS))("%s refuses each role without its right", async (_, route) => {
    const right = route.right;
    if (right === "none") throw new Error("the list of cases has no public route");
    const [named] = await pathsOf(route.path, api.database.database.pool);
    for (const role of API_ROLES.filter((one) => !hasRight(one, right))) {
      const answer = await ask(named?.path ?? "", await tokenOf(role, {}));
      expect([role, answer.status]).toEqual([role, 403]);
    }
  });

  const rolesOf = ({ right }: Route): ApiRole[] =>
    API_ROLES.filter((role) => right !== "none" && hasRight(role, right));

  const limitsOf = (role: ApiRole) =>
    isRoleOfTenants(role)
      ? tenants.map((tenant) => ({ site: undefined, tenant }))
      : sites.map((site) => ({ site, tenant: undefined }));

  it.each(cases(READS.filter(isNamed)))(
    "%s shows an object only to tokens of its site and tenant",
    async (_, route) => {
      const paths = await pathsOf(route.path, api.database.database.pool);
      const seen = { own: 0, foreign: 0 };
      const missing = route.path.replace(/\{\w+\}/g, randomUUID());
      for (const role of rolesOf(route)) {
        for (const limit of limitsOf(role)) {
          const token = await tokenOf(role, limit);
          const nothing = await ask(missing, token);
          for (const { path, site, tenant } of paths) {
            const own = limit.tenant === undefined ? limit.site === site : limit.tenant === tenant;
            seen[own ? "own" : "foreign"] += 1;
            const answer = await ask(path, token);
            expect([role, path, answer.status]).toEqual([role, path, own ? 200 : 404]);
            if (own || answer.problem === undefined) continue;
            // The text of the error is the text for an object that does not exist, except for the id.
            const ids = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
            expect(answer.problem.detail.replace(ids, "ID")).toBe(nothing.problem.detail.replace(ids, "ID"));
          }
        }
      }
      expect(seen.own, "objects that a token reaches").toBeGreaterThan(0);
      expect(seen.foreign, "objects that a token does not reach").toBeGreaterThan(0);
    },
  );

  const siteOf = (route: Route, item: Item): string | null => {
    if (route.operationId === "listMaasSites") return String(item["id"]);
    const { site_id } = { site_id: undefined, ...item };
    if (site_id !== undefined) return site_id as string | null;
    if (Array.isArray(item["site_ids"])) return item["site_ids"][0] ?? null;
    if (item["site_ids"] === null) return null;
    if (typeof item["node_id"] === "string") return siteOfNode.get(item["node_id"]) ?? null;
    if (typeof item["subject"] === "string") {
      const { data } = item as { data: Item };
      const [kind, id = ""] = item["subject"].split("/");
      if (typeof data["site_id"] === "string") return data["site_id"];
      return kind === "nodes" ? (siteOfNode.get(id) ?? null) : kind === "maas-sites" ? id : null;
    }
    throw new Error(`nobody knows the site of an item of ${route.operationId}; say it in this test`);
  };
  const tenantOf = (item: Item): string | null => {
    if (typeof item["subject"] !== "string") return (item["tenant"] ?? null) as string | null;
    return item["subject"].startsWith("allocations/") ? ((item as { data: Item }).data["tenant"] as string) : null;
  };
  /** A route that counts has one item for each counted node. */
  async function countedBySite(token: string): Promise<Item[]> {
    const { body } = await ask("/api/v1/admin/nodes/facets", token);
    const sites: { value: string; count: number }[] = body.facets.site_id.values;
    return sites.flatMap(({ value, count }) => Array<Item>(count).fill({ site_id: value }));
  }
  /** The history of the fleet has one item for each node that its newest sample counted. */
  async function sampledBySite(token: string): Promise<Item[]> {
    await api.database.database.inTx(sampleFleet);
    const sites = new Set((await countedBySite(api.admin)).map(({ site_id }) => site_id));
    const sampled = async (site: unknown): Promise<Item[]> => {
      const { body } = await ask(`/api/v1/admin/overview/history?site_id=${site}`, token);
      const counts: number[] = Object.values(body.points.at(-1).nodes);
      return counts.flatMap((count) => Array<Item>(count).fill({ site_id: site as string }));
    };
    return (await Promise.all([...sites].map(sampled))).flat();
  }
  /** The hub audits a refused request in the background, so an entry of a refusal may appear between two lists of the audit. */
  const isSettled = ({ outcome }: Item & { readonly outcome?: unknown }): boolean => outcome !== "refused";
  async function itemsOf(path: string, token: string): Promise<Item[]> {
    if (path === "/api/v1/admin/nodes/facets") return countedBySite(token);
    if (path === "/api/v1/admin/overview/history") return sampledBySite(token);
    const items: Item[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`;
      const { status, body, problem }: Answer = await ask(`${path}${query}`, token);
      expect(status, JSON.stringify(problem)).toBe(200);
      items.push(...(Object.values(body).find((value) => Array.isArray(value)) as Item[]));
      cursor = body.next_cursor ?? null;
    } while (cursor !== null);
    // The last use of a token changes while the test reads, and an approval says what its reader may do. Both say nothing about the reach.
    return items.filter(isSettled).map(({ last_used_at: _, cannot_grant: __, requested_by_you: ___, ...item }) => item);
  }

  it.each(cases(READS.filter(({ place }) => place === "list")))(
    "%s lists to a token exactly the items of its site and tenant",
    async (_, route) => {
      // All tokens exist before the lists are read, because one of the lists is the list of tokens.
      for (const role of rolesOf(route)) for (const limit of limitsOf(role)) await tokenOf(role, limit);
      const all = await itemsOf(route.path, api.admin);
      const seen = { own: 0, foreign: 0 };
      for (const role of rolesOf(route)) {
        for (const limit of limitsOf(role)) {
          const own = all.filter((item) =>
            limit.tenant === undefined ? siteOf(route, item) === limit.site : tenantOf(item) === limit.tenant,
          );
          seen.own += own.length;
          seen.foreign += all.length - own.length;
          expect(await itemsOf(route.path, await tokenOf(role, limit)), `${role} ${JSON.stringify(limit)}`).toEqual(
            own,
          );
        }
      }
      expect(seen.own, "items that a token reaches").toBeGreaterThan(0);
      expect(seen.foreign, "items that a token does not reach").toBeGreaterThan(0);
    },
  );

  it.each(cases(READS.filter(({ place }) => place === "hub")))(
    "%s answers only a token for the whole hub",
    async (_, route) => {
      const [named] = await pathsOf(route.path, api.database.database.pool);
      for (const role of rolesOf(route)) {
        const limited = await ask(named?.path ?? "", await tokenOf(role, { site: sites[0] }));
        expect([role, limited.status, limited.problem.code]).toEqual([role, 403, "forbidden"]);
        expect([role, (await ask(named?.path ?? "", await tokenOf(role, {}))).status]).toEqual([role, 200]);
      }
    },
  );

  it.each(cases(READS.filter(({ path }) => (path.match(/\{/g)?.length ?? 0) > 1 && !path.includes("webhooks"))))(
    "%s finds no object of another site under one's own site",
    async (_, route) => {
      const paths = await pathsOf(route.path, api.database.database.pool);
      for (const { path, site } of paths) {
        const own = sites.find((one) => one !== site) ?? "";
        const answer = await ask(path.replace(site ?? "", own), await tokenOf("viewer", { site: own }));
        expect([path, answer.status]).toEqual([path, 404]);
      }
      expect(paths.length).toBeGreaterThan(0);
    },
  );

  it("shows a tenant nothing of another site if its token is limited to a site too", async () => {
    const { pool } = api.database.database;
    const { rows } = await pool.query<{ id: string; tenant: string; site: SiteId }>(
      "select id, tenant, site_id as site from allocations limit 1",
    );
    const [{ id, tenant, site }] = rows as [{ id: string; tenant: string; site: SiteId }];
    const other = sites.find((one) => one !== site) as SiteId;
    for (const [only, status] of [
      [site, 200],
      [other, 404],
    ] as const) {
      const token = await apiToken(api.database, { name: `tenant at ${only}`, role: "tenant", sites: [only], tenant });
      expect((await ask(`/api/v1/admin/allocations/${id}`, token)).status).toBe(status);
    }
  });

  it("shows nothing to a token without any site", async () => {
    const token = await apiToken(api.database, { name: "no site", role: "admin", sites: [] });
    expect(await itemsOf("/api/v1/admin/nodes", token)).toEqual([]);
    expect((await ask(`/api/v1/admin/maas-sites/${sites[0]}`, token)).status).toBe(404);
  });
});
