import { describe, expect, it } from "vitest";
import * as checks from "./checks.ts";

/** For each check: texts that it takes, and texts that it refuses. An empty text is always missing. */
const CASES: Readonly<Record<string, { check: checks.Check; good: readonly string[]; bad: readonly string[] }>> = {
  hostname: {
    check: checks.hostname,
    good: ["c07u41", " a ", "a".repeat(63)],
    bad: ["C07", "-a", "a-", "a.b", "a".repeat(64)],
  },
  interface: { check: checks.interfaceName, good: ["eno8303", "enp28s0np0"], bad: ["a b", "a".repeat(16), "-a"] },
  name: { check: checks.name, good: ["dc-1"], bad: ["DC", "a_b", "-a"] },
  account: { check: checks.account, good: ["ada", "a_b-1"], bad: ["_ada", "1a", "Ada"] },
  systemAccount: { check: checks.systemAccount, good: ["_x", "hpcadmin"], bad: ["1a"] },
  sku: { check: checks.sku, good: ["mi300x.192g.8gpu"], bad: ["A", ".a"] },
  tokenName: { check: checks.tokenName, good: ["CI.deploy"], bad: ["a b", "-a"] },
  maasToken: { check: checks.maasToken, good: ["a:b:c"], bad: ["a:b", "a:b:c:d", "a::c"] },
  place: { check: checks.place, good: ["R 07", "a"], bad: [".a", "a."] },
  mac: {
    check: checks.mac,
    good: ["52:54:00:12:34:56", "52-54-00-12-34-5F"],
    bad: ["52:54:00:12:34", "52:54:00:12:34:5g"],
  },
  address: {
    check: checks.address,
    good: ["10.0.0.1", "fd00::1", "255.255.255.255"],
    bad: ["10.0.0.256", "10.0.0", "fd00:::1", "host", "01.2.3.4"],
  },
  cidr: {
    check: checks.cidr,
    good: ["172.30.0.1/31", "0.0.0.0/0"],
    bad: ["172.30.0.1", "172.30.0.1/33", "1.1.1.1/3/4", "1.1.1.1/01"],
  },
  whole: { check: checks.whole(1, 366), good: ["1", "366", " 90 "], bad: ["0", "367", "1.5", "-1", "1e2"] },
  webAddress: {
    check: checks.webAddress,
    good: ["http://maas.example:5240/MAAS", "https://a"],
    bad: ["maas.example", "ftp://a", "http://"],
  },
};

describe("the checks of fields", () => {
  for (const [name, { check, good, bad }] of Object.entries(CASES))
    it(`${name} takes what is right, and says what is wrong`, () => {
      expect(good.filter((text) => check(text) !== undefined)).toEqual([]);
      expect(bad.filter((text) => check(text) === undefined)).toEqual([]);
      expect(check(" ")).toBe("is missing");
      expect(checks.optional(check)(" ")).toBeUndefined();
      expect(checks.optional(check)(bad[0] ?? "")).toBe(check(bad[0] ?? ""));
    });
});

it("takes parts of a text, whatever stands between them", () => {
  expect(checks.partsOf(" 1.1.1.1, 8.8.8.8\n9.9.9.9 ")).toEqual(["1.1.1.1", "8.8.8.8", "9.9.9.9"]);
  expect(checks.partsOf(" \n,")).toEqual([]);
});
