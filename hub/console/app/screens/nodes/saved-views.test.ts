import { describe, expect, it } from "vitest";
import { parseViews, withView } from "./saved-views.ts";

describe("saved views", () => {
  it("are read from their stored form, and from nothing else", () => {
    const views = [{ name: "broken", query: "?status=offline" }];
    expect(parseViews(JSON.stringify(views))).toEqual(views);
    for (const odd of [null, "", "{", "7", '[1, {"name": 1}, null]']) expect(parseViews(odd)).toEqual([]);
  });

  it("have one view of a name, in the order of the names", () => {
    const views = [
      { name: "a", query: "?x=1" },
      { name: "c", query: "" },
    ];
    expect(withView(views, { name: " b ", query: "?y=1" }).map(({ name }) => name)).toEqual(["a", "b", "c"]);
    expect(withView(views, { name: "a", query: "?x=2" })).toContainEqual({ name: "a", query: "?x=2" });
    expect(withView(views, { name: "a", query: "?x=2" })).toHaveLength(2);
    expect(withView(views, { name: "  ", query: "?x=2" })).toEqual(views);
  });
});
