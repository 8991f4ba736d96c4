import { describe, expect, it } from "vitest";
import { eraseSigns } from "./erase-signs.ts";

describe("the signs of an erase's end", () => {
  it.each([
    ["3.2.0", "release", false],
    ["3.3.11", "release", false],
    ["3.4.0", "release", false],
    ["3.4.5", "release", false],
    ["3.4.6", "event", false],
    ["3.4.10", "event", false],
    ["3.5.0", "release", true],
    ["3.5.2", "release", true],
    ["3.5.2-16326-g.0a1b2c3", "release", true],
    ["3.5.3", "event", true],
    ["3.5.12", "event", true],
    ["3.6.0", "event", true],
    ["3.7.3", "event", true],
    ["4.2.0", "event", true],
    ["3.1.0", "event", true],
    ["2.9.2", "event", true],
    ["3.5", "event", true],
    ["3.2.1000", "event", true],
    ["13.2.0", "event", true],
    ["", "event", true],
    ["unknown", "event", true],
  ] as const)("of MAAS %s: %s", (version, end, hasReleaseScripts) => {
    expect(eraseSigns(version)).toEqual({ end, hasReleaseScripts });
  });
});
