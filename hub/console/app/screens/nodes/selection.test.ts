import { describe, expect, it } from "vitest";
import { bySite, change, NOTHING, sizeOf } from "./selection.ts";

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
    const some = change(NOTHING, LOADED, ["a", "b", "c", "d"], true);
    expect(bySite(some, [])).toEqual([
      { siteId: "s1", ids: ["a", "c"], expected: null },
      { siteId: "s2", ids: ["b"], expected: null },
    ]);
    expect(bySite({ kind: "all", count: 3 }, [{ value: "s1", count: 2 }])).toEqual([
      { siteId: "s1", ids: null, expected: 2 },
    ]);
  });
});
