import { expect, it } from "vitest";
import { hasFilter, isPreset, PRESETS } from "./operation-list.ts";

it("knows which preset an address is, whatever its order", () => {
  for (const { search, title } of PRESETS)
    expect(PRESETS.filter((other) => isPreset(search, other.search)).map((one) => one.title)).toEqual([title]);
  expect(isPreset({ status: ["failed"], sort: "requested_at" }, { status: ["failed"] })).toBe(true);
  expect(isPreset({ status: ["running", "pending", "compensating"] }, PRESETS[3]?.search ?? {})).toBe(true);
  expect(isPreset({ status: ["failed"], kind: ["drain"] }, { status: ["failed"] })).toBe(false);
  expect(hasFilter({ sort: "requested_at" })).toBe(false);
  expect(hasFilter({ slow: "true" })).toBe(true);
});
