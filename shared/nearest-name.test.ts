import { describe, expect, it } from "vitest";
import { nearest } from "./nearest-name.ts";

const KNOWN = ["MUSTER_HTTP_PORT", "MUSTER_HTTP_HOST", "MUSTER_SECRETS"];

describe("the known name that a mistyped name means", () => {
  it.each([
    ["MUSTER_HTTP_PROT", "MUSTER_HTTP_PORT"],
    ["MUSTER_HTTPPORT", "MUSTER_HTTP_PORT"],
    ["MUSTER_SECRET", "MUSTER_SECRETS"],
    ["MUSTER_HTTP_HOST", "MUSTER_HTTP_HOST"],
    ["MUSTER_WEATHER", null],
    ["", null],
  ])("of %j is %j", (name, meant) => {
    expect(nearest(name, KNOWN)).toBe(meant);
  });
});
