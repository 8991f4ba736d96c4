import { describe, expect, it } from "vitest";
import { checkGroup, type GroupValues, groupBody, groupPatch, NO_GROUP, valuesOf } from "./key-group-form.ts";

const KEYS = [
  { id: "k1", name: "ada", site_ids: null },
  { id: "k2", name: "bob", site_ids: ["s1", "s2"] },
];
const GOOD: GroupValues = { ...NO_GROUP, name: "team", tenant: "acme", key_ids: ["k1"] };
const wrong = (changes: Partial<GroupValues>, before?: Parameters<typeof checkGroup>[2]) =>
  Object.entries(checkGroup({ ...GOOD, ...changes }, KEYS, before)).flatMap(([name, error]) =>
    error === undefined ? [] : [name],
  );

describe("the form of a key group", () => {
  it("takes a group without keys and without a description", () => {
    expect(wrong({})).toEqual([]);
    expect(wrong({ key_ids: [] })).toEqual([]);
  });

  it("says which field is wrong", () => {
    expect(wrong({ name: " " })).toEqual(["name"]);
    expect(wrong({ name: "a".repeat(257) })).toEqual(["name"]);
    expect(wrong({ name: "a\tb" })).toEqual(["name"]);
    expect(wrong({ tenant: "" })).toEqual(["tenant"]);
    expect(wrong({ tenant: "a".repeat(129) })).toEqual(["tenant"]);
    expect(wrong({ description: "a".repeat(1025) })).toEqual(["description"]);
    expect(wrong({ key_ids: Array.from({ length: 33 }, (_, n) => `x${n}`) })).toEqual(["key_ids"]);
    expect(wrong({ key_ids: Array.from({ length: 32 }, (_, n) => `x${n}`) })).toEqual([]);
  });

  it("wants keys that may be used at all sites of the group", () => {
    expect(wrong({ key_ids: ["k2"] })).toEqual(["key_ids"]);
    expect(wrong({ key_ids: ["k2"], site_ids: ["s1"] })).toEqual([]);
    expect(wrong({ key_ids: ["k2"], site_ids: ["s1", "s3"] })).toEqual(["key_ids"]);
    expect(wrong({ key_ids: ["k1"], site_ids: ["s3"] })).toEqual([]);
    expect(checkGroup({ ...GOOD, key_ids: ["k1", "k2"] }, KEYS).key_ids).toMatch(/: bob$/);
  });

  it("keeps a limit to sites", () => {
    const limited = { ...GOOD, site_ids: ["s1"] };
    expect(wrong({}, limited)).toEqual(["site_ids"]);
    expect(wrong({ site_ids: ["s2"] }, limited)).toEqual([]);
    expect(wrong({}, { ...GOOD, site_ids: null })).toEqual([]);
  });

  it("sends sites only if some are chosen, and of a change only what is different", () => {
    expect(groupBody({ ...GOOD, name: " team " })).toEqual({
      ...{ name: "team", tenant: "acme", description: "", key_ids: ["k1"] },
    });
    const before = { ...GOOD, site_ids: null };
    expect(groupPatch(before, valuesOf(before))).toEqual({});
    expect(groupPatch(before, { ...GOOD, key_ids: ["k1", "k2"], site_ids: ["s1"] })).toEqual({
      ...{ key_ids: ["k1", "k2"], site_ids: ["s1"] },
    });
  });
});
