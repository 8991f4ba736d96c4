import { describe, expect, it } from "vitest";
import { bySite, change, choicesOf, NOTHING, type SiteCounts, sizeOf } from "./selection.ts";

const countsOf = (total: number, more: number, ...sites: [string, number][]): SiteCounts => ({
  total,
  facets: { site_id: { values: sites.map(([value, count]) => ({ value, count })), more } },
});

const LOADED = new Map([
  ["a", "s1"],
  ["b", "s2"],
  ["c", "s1"],
  ["d", null],
]);

describe("the choice of nodes", () => {
  it("gains and loses nodes", () => {
    const two = change(NOTHING, LOADED, ["a", "b"], true);
    expect(sizeOf(two)).toBe(2);
    expect(sizeOf(change(two, LOADED, ["a"], false))).toBe(1);
    expect(sizeOf(NOTHING)).toBe(0);
  });

  it("of all stays all when a node is added, and becomes the loaded nodes when one is taken out", () => {
    const all = { kind: "all", count: 3_000 } as const;
    expect(change(all, LOADED, ["a"], true)).toBe(all);
    const less = change(all, LOADED, ["a"], false);
    expect(less).toMatchObject({ kind: "some" });
    expect(sizeOf(less)).toBe(3);
  });

  it("is one request for each site, by ids or by the number that the person has seen", () => {
    const some = change(NOTHING, LOADED, ["a", "b", "c"], true);
    expect(bySite(some, undefined, undefined).choices).toEqual([
      { siteId: "s1", ids: ["a", "c"], expected: null },
      { siteId: "s2", ids: ["b"], expected: null },
    ]);
    expect(bySite({ kind: "all", count: 5 }, countsOf(5, 0, ["s1", 2], ["s2", 3]), undefined)).toEqual({
      choices: [
        { siteId: "s1", ids: null, expected: 2 },
        { siteId: "s2", ids: null, expected: 3 },
      ],
      refusal: null,
    });
  });

  it("with a node of no site is refused, and no node is left out silently", () => {
    const some = change(NOTHING, LOADED, ["a", "d"], true);
    expect(bySite(some, undefined, undefined)).toEqual({
      choices: [],
      refusal: expect.stringMatching(/^1 of the chosen nodes belong to no site/),
    });
  });

  it("of all at one site asks nothing of the other sites that the counts name", () => {
    const counts = countsOf(2, 0, ["s1", 2], ["s2", 3]);
    expect(bySite({ kind: "all", count: 2 }, counts, "s1")).toEqual({
      choices: [{ siteId: "s1", ids: null, expected: 2 }],
      refusal: null,
    });
    expect(bySite({ kind: "all", count: 2 }, countsOf(2, 7, ["s1", 2], ["s2", 3]), "s1").refusal).toBeNull();
  });

  it("of all is refused while the counts leave out sites or are not there", () => {
    const refused = bySite({ kind: "all", count: 9 }, countsOf(9, 1, ["s1", 2], ["s2", 3]), undefined);
    expect(refused).toMatchObject({ choices: [], refusal: expect.stringContaining("too many sites") });
    expect(bySite({ kind: "all", count: 9 }, undefined, "s1")).toMatchObject({ choices: [] });
  });

  it("is confirmed with the numbers of the preview, also if an event has changed them meanwhile", () => {
    const seen = [{ siteId: "s1", ids: null, expected: 2 }];
    const present = [{ siteId: "s1", ids: null, expected: 3 }];
    expect(choicesOf(null, present)).toEqual(present);
    expect(choicesOf([{ choice: seen[0] as never }], present)).toEqual(seen);
  });
});
