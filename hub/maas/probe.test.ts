import { describe, expect, it } from "vitest";
import { hasBootImage, missingScripts } from "./boot-images.ts";
import { secondsOf } from "./probe.ts";

describe("a duration as MAAS keeps it", () => {
  it.each([
    ["15m", 900],
    ["1h", 3600],
    ["1h 30m", 5400],
    ["2d4h5s", 187_205],
    ["90s", 90],
  ])("%s is %i seconds", (text, seconds) => expect(secondsOf(text)).toBe(seconds));
  it.each(["", "15", "m", "15 minutes", "-5m"])("'%s' is none", (text) => expect(secondsOf(text)).toBeNull());
});

describe("a boot image", () => {
  const images = [
    { name: "ubuntu/noble", architecture: "amd64/ga-24.04" },
    { name: "gpu-host", architecture: "arm64/generic" },
  ];
  it.each([
    ["ubuntu/noble", "amd64/generic", true],
    ["ubuntu/noble", "arm64/generic", false],
    ["ubuntu/jammy", "amd64/generic", false],
    ["custom/gpu-host", "arm64/generic", true],
  ])("%s for %s", (series, architecture, there) => expect(hasBootImage(images, { series, architecture })).toBe(there));
});

it("misses a script by name or tag, and `none` only among commissioning scripts", () => {
  const known = { commissioning: new Set(["lldpd", "net"]), testing: new Set(["smartctl"]) };
  expect(missingScripts(known, { commissioning: ["net", "none"], testing: ["none"] })).toEqual(["none"]);
  expect(missingScripts(known, { commissioning: [], testing: ["smartctl", "fio"] })).toEqual(["fio"]);
});
