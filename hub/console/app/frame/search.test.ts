import { describe, expect, it } from "vitest";
import { oneOf, readSearch, searchOf, several, severalOf, text, writeSearch } from "./search.ts";

const parse = searchOf({
  search: text(10),
  status: severalOf(["active", "offline"]),
  sku_id: several(2),
  sort: oneOf(["hostname", "-hostname"]),
});

describe("the query of an address", () => {
  it("has the same values after it was written and read", () => {
    const search = {
      search: "c07u41",
      status: ["active", "offline"],
      sku_id: ["a:b", "c/d"],
      sort: "-hostname",
    } as const;
    expect(writeSearch(search)).toBe("?search=c07u41&status=active,offline&sku_id=a:b,c/d&sort=-hostname");
    expect(parse(readSearch(writeSearch(search)))).toEqual(search);
  });

  it("takes values from links as from addresses", () => {
    expect(parse({ status: ["offline"], sku_id: "a,b" })).toEqual({ status: ["offline"], sku_id: ["a", "b"] });
  });

  it.each([
    [{ search: "longer than ten" }, {}],
    [{ search: "   " }, {}],
    [{ status: "active,lost" }, { status: ["active"] }],
    [{ status: "lost" }, {}],
    [{ sku_id: "a,a,b,c" }, { sku_id: ["a", "b"] }],
    [{ sku_id: "," }, {}],
    [{ sort: "size" }, {}],
    [{ unknown: "1" }, {}],
  ])("leaves out of %j what does not fit", (raw, parsed) => {
    expect(parse(raw)).toEqual(parsed);
  });

  it("is empty without values", () => {
    expect(writeSearch({ search: undefined, status: [], sort: null })).toBe("");
  });
});
