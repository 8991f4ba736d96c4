import { describe, expect, it } from "vitest";
import { hasBootImage, missingScripts } from "./boot-images.ts";
import { dnsCheck } from "./probe.ts";
import { durationOf, secondsOf } from "./sync-interval.ts";

describe("a duration in MAAS's notation", () => {
  it.each([
    ["15m", 900],
    ["1h", 3600],
    ["1h 30m", 5400],
    ["2d4h5s", 187_205],
    ["90s", 90],
  ])("%s is %i seconds", (text, seconds) => expect(secondsOf(text)).toBe(seconds));
  it.each([60, 90, 900, 3_600, 5_400, 86_400])(
    "%i s are written in a form that is read as the same duration",
    (seconds) => expect(secondsOf(durationOf(seconds))).toBe(seconds),
  );
  it.each(["", "15", "m", "15 minutes", "-5m"])("'%s' is not a duration", (text) => expect(secondsOf(text)).toBeNull());
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

it("finds a script by name or tag, and accepts `none` only among testing scripts", () => {
  const known = { commissioning: new Set(["lldpd", "net"]), testing: new Set(["smartctl"]) };
  expect(missingScripts(known, { commissioning: ["net", "none"], testing: ["none"] })).toEqual(["none"]);
  expect(missingScripts(known, { commissioning: [], testing: ["smartctl", "fio"] })).toEqual(["fio"]);
});

describe("the servers to which MAAS's DNS forwards names", () => {
  it.each([
    ["1.1.1.1 8.8.8.8", ["8.8.8.8", "1.1.1.1"]],
    [" 9.9.9.9  1.1.1.1 ", ["1.1.1.1"]],
    ["1.1.1.1,2001:DB8::0:53", ["2001:db8::53"]],
  ])("'%s' has %j", (setting, wanted) => expect(dnsCheck(setting, wanted)).toMatchObject({ status: "ok" }));
  it.each([
    [
      null,
      ["1.1.1.1", "8.8.8.8"],
      /forwards names to no server, .* Set upstream_dns in MAAS to "1\.1\.1\.1 8\.8\.8\.8"/,
    ],
    ["", ["1.1.1.1"], /forwards names to no server/],
    [{ servers: 1 }, ["1.1.1.1"], /forwards names to no server/],
    [
      "9.9.9.9",
      ["1.1.1.1"],
      /to 9\.9\.9\.9, but not to 1\.1\.1\.1 as the site requires\. .* to "9\.9\.9\.9 1\.1\.1\.1"/,
    ],
    ["1.1.1.10", ["1.1.1.1"], /but not to 1\.1\.1\.1 as/],
  ])("%j lacks one of %j", (setting, wanted, says) =>
    expect(dnsCheck(setting, wanted)).toMatchObject({ status: "warning", message: expect.stringMatching(says) }),
  );
});
