import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { LIFECYCLE_COLUMNS } from "../../../shared/api/node-lifecycle.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { type ApiAnswer, crawlApi } from "../../support/crawl-api.ts";
import { seedFullFleet } from "../../support/full-fleet.ts";

const READS = ROUTES.filter((route) => route.method === "GET" && route.stream === undefined);

/** True if the request was for the route. A path without ids, such as `/nodes/facets`, also fits the pattern of `/nodes/{id}`. */
const isOf = (path: string, asked: string): boolean =>
  new RegExp(`^${path.replace(/\{\w+\}/g, "[^/?]+")}([?]|$)`).test(asked) &&
  (!path.includes("{") || !READS.some((route) => route.path === asked.split("?", 1)[0]));

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
    await seedFullFleet(api);
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
      // The last use of a token changes while the test reads.
      if (next === null) return items.map(({ last_used_at: _, ...item }) => item);
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
        if (route.produces === "text/plain") {
          expect(text).toContain("content-type: text/plain");
          expect(text).toContain("\n# TYPE muster_nodes gauge\n");
          continue;
        }
        const answer = JSON.parse(text.slice(text.indexOf("\n{") + 1));
        // The parser of the route's schema drops unknown fields, so an undocumented field makes the comparison fail.
        expect(route.response.parse(answer)).toEqual(answer);
      }
    },
  );
});
