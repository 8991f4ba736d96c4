import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Route } from "../../../hub/http/route.ts";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { WRITE_CASES, writeCaseOf } from "../../support/write-cases.ts";
import { WriteWorld } from "../../support/write-world.ts";

const WRITES = ROUTES.filter(({ method }) => method !== "GET");

const filledIn = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (whole, name: string) => params[name] ?? whole);

describe("every route that writes", () => {
  let api: ApiHarness;
  let region: MaasSimulator;
  let world: WriteWorld;
  beforeAll(async () => {
    [api, region] = await Promise.all([startApi(), startMaasSimulator({ machines: 1 })]);
    world = new WriteWorld(api, region);
  });
  afterAll(async () => {
    await region?.close();
    await api?.close();
  });

  /** Returns the header with an object's version, as a PATCH request needs it. The version comes from a GET request. */
  async function versionOf(route: Route, path: string): Promise<Record<string, string>> {
    if (route.method !== "PATCH") return {};
    return { "if-match": (await api.ask("GET", path)).headers.get("etag") ?? "" };
  }

  it.each(WRITES.map((route) => [route.operationId, route] as const))(
    "%s answers as its route says",
    async (_, route) => {
      const { params = {}, body } = await writeCaseOf(route)(world);
      const path = filledIn(route.path, params);
      const answer = await api.ask(route.method, path, body, await versionOf(route, path));
      expect(answer.status, JSON.stringify(answer.problem)).toBe(route.status);
      // The parser of the route's schema drops unknown fields, so an undocumented field makes the comparison fail.
      expect(route.response.parse(answer.body)).toEqual(answer.body);
    },
  );

  it("has a case: a route without one is named, with where to add it", () => {
    const added = { operationId: "repaintNode", method: "POST", path: "/api/v1/admin/nodes/{id}/repaint" } as const;
    expect(() => writeCaseOf(added)).toThrow(/repaintNode .*test\/support\/write-cases[.]ts/);
  });

  it("is still there for each case", () => {
    const served = new Set(WRITES.map(({ operationId }) => operationId));
    expect(Object.keys(WRITE_CASES).filter((id) => !served.has(id))).toEqual([]);
  });
});
