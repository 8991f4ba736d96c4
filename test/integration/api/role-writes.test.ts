import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Route } from "../../../hub/http/route.ts";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { hasRight } from "../../../shared/api/rights.ts";
import { API_ROLES, type ApiRole, isRoleOfTenants } from "../../../shared/api/roles.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { type Answer, type ApiHarness, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { type WriteCase, writeCaseOf } from "../../support/write-cases.ts";
import { WriteWorld } from "../../support/write-world.ts";

/**
 * Every writing route of the API, for every role, at its own and at a foreign site (decision I3). The cases come from the list of routes and from
 * `test/support/write-cases.ts`, so that a new route is tested without a line in this file.
 */
const WRITES = ROUTES.filter(({ method, right }) => method !== "GET" && right !== "none");
/** The routes that judge each object of a request by itself, which their own tests show: here `api-signals.test.ts`. */
const BY_ITEM = ["postSignals"];
const cases = (routes: readonly Route[]) => routes.map((route) => [route.operationId, route] as const);
const filledIn = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (whole, name: string) => params[name] ?? whole);
const mayBe = (role: ApiRole, { right }: Route): boolean => right !== "none" && hasRight(role, right);

/** A prepared request, and the sites that the preparation made for it. */
interface Prepared {
  readonly params: Readonly<Record<string, string>>;
  readonly path: string;
  readonly body: object | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly sites: readonly SiteId[];
}

describe("every route that writes, for every role", () => {
  let api: ApiHarness;
  let region: MaasSimulator;
  let world: WriteWorld;
  let foreign: SiteId;
  let made = 0;
  beforeAll(async () => {
    [api, region] = await Promise.all([startApi(), startMaasSimulator({ machines: 1 })]);
    world = new WriteWorld(api, region);
    foreign = (await world.site()).siteId as SiteId;
  });
  afterAll(async () => {
    await region?.close();
    await api?.close();
  });

  const allSites = async (): Promise<SiteId[]> =>
    (await api.database.database.pool.query<{ id: SiteId }>("select id from maas_sites")).rows.map(({ id }) => id);

  async function prepare(route: Route): Promise<Prepared> {
    const before = new Set(await allSites());
    const { params = {}, body }: WriteCase = await writeCaseOf(route)(world);
    const path = filledIn(route.path, params);
    const version = route.method === "PATCH" ? ((await api.ask("GET", path)).headers.get("etag") ?? "") : undefined;
    return {
      params,
      path,
      body,
      headers: version === undefined ? {} : { "if-match": version },
      sites: (await allSites()).filter((site) => !before.has(site)),
    };
  }

  function tokenOf(role: ApiRole, sites: readonly SiteId[] | null): Promise<string> {
    made += 1;
    const tenant = isRoleOfTenants(role) ? "acme" : null;
    return apiToken(api.database, { name: `${role} ${made}`, role, sites: sites === null ? null : [...sites], tenant });
  }
  const ask = (route: Route, { path, body, headers }: Prepared, token: string): Promise<Answer> =>
    api.ask(route.method, path, body, { ...headers, authorization: `Bearer ${token}` });

  it("names the object or the whole hub as its place, because a list or an open place is no place for a change", () => {
    const open = WRITES.filter(({ place }) => place === "list" || place === "everywhere");
    expect(open.map(({ operationId }) => operationId)).toEqual(BY_ITEM);
  });

  const whole = WRITES.filter(({ operationId }) => !BY_ITEM.includes(operationId));
  it.each(cases(whole))("%s refuses roles without its right and objects of a foreign site", async (_, route) => {
    const prepared = await prepare(route);
    const before = await api.counts();
    const nowhere = randomUUID() as SiteId;
    for (const role of API_ROLES)
      for (const sites of [[foreign], [nowhere], []]) {
        const answer = await ask(route, prepared, await tokenOf(role, sites));
        const expected = mayBe(role, route) && route.place !== "hub" ? "not_found" : "forbidden";
        expect([role, answer.problem?.code, answer.status]).toEqual([
          role,
          expected,
          expected === "forbidden" ? 403 : 404,
        ]);
      }
    for (const role of API_ROLES.filter((one) => !mayBe(one, route))) {
      const answer = await ask(route, prepared, await tokenOf(role, null));
      expect([role, answer.problem?.code]).toEqual([role, "forbidden"]);
    }
    expect(await api.counts()).toEqual(before);
  });

  it.each(cases(WRITES))("%s accepts each role with its right, at its own site", async (_, route) => {
    const roles = API_ROLES.filter((role) => mayBe(role, route));
    expect(roles).toContain("admin");
    for (const role of roles) {
      const prepared = await prepare(route);
      const token = await tokenOf(role, route.place === "hub" ? null : prepared.sites);
      if (route.place !== "hub") expect(prepared.sites.length, "sites that the case made").toBeGreaterThan(0);
      // Only the system that began an attempt of external provisioning reports about it.
      await api.database.database.pool.query("update external_attempts set holder = $1", [`${role} ${made}`]);
      const answer = await ask(route, prepared, token);
      expect([role, answer.status], JSON.stringify(answer.problem)).toEqual([role, route.status]);
    }
  });

  it.each(cases(WRITES.filter(({ path, place }) => (path.match(/\{/g)?.length ?? 0) > 1 && place !== "hub")))(
    "%s finds no object of another site under one's own site",
    async (_, route) => {
      const prepared = await prepare(route);
      const path = filledIn(route.path, { ...prepared.params, id: foreign });
      const answer = await ask(route, { ...prepared, path }, await tokenOf("admin", [foreign]));
      expect([answer.status, answer.problem?.code]).not.toContain(route.status);
      expect([404, 412]).toContain(answer.status);
    },
  );

  const ofRepairs = whole.filter((route) => mayBe("repair", route));
  it("repair systems write only about repairs, whose claim decides who may", () => {
    expect(
      ofRepairs.filter(({ path }) => !path.includes("/repairs/{id}")).map(({ operationId }) => operationId),
    ).toEqual([]);
    expect(ofRepairs.length).toBeGreaterThan(1);
    const tenants = API_ROLES.filter(isRoleOfTenants).filter((role) => WRITES.some((route) => mayBe(role, route)));
    expect(tenants, "roles of a tenant with a right to write").toEqual(["repair"]);
  });

  it.each(cases(ofRepairs))(
    "%s refuses a repair system of another tenant than the one of the claim",
    async (_, route) => {
      const prepared = await prepare(route);
      const claim = `update repair_cases set state = 'claimed', claimed_by = 'acme-1', repair_tenant = 'acme',
      claim_until = now() + interval '1 hour' where id = $1`;
      await api.database.database.pool.query(claim, [prepared.params["id"]]);
      const before = await api.counts();
      for (const sites of [null, prepared.sites]) {
        const token = {
          name: randomUUID(),
          role: "repair",
          sites: sites === null ? null : [...sites],
          tenant: "other",
        } as const;
        const answer = await ask(route, prepared, await apiToken(api.database, token));
        expect([answer.status, answer.problem?.code]).toEqual([404, "not_found"]);
      }
      expect(await api.counts()).toEqual(before);
    },
  );

  it("a limited token creates no node without a site, which would belong to nobody", async () => {
    const { site_id: _, ...body } = (await world.manualNodeRequest()) as { site_id: string };
    const token = await tokenOf("admin", await allSites());
    const answer = await api.ask("POST", "/api/v1/admin/nodes", body, { authorization: `Bearer ${token}` });
    expect(answer.problem?.code).toBe("forbidden");
  });
});
