import { expect, it } from "vitest";
import { IpAddress } from "./values.ts";

it.each([
  ["10.80.0.11", "10.80.0.11"],
  ["fd00::9", "fd00::9"],
  ["FD00:0::9", "fd00::9"],
  ["fd00:0000:0:0::0009", "fd00::9"],
])("stores the address %s as %s, so that a BMC has one spelling", (given, kept) => {
  expect(IpAddress.parse(given)).toBe(kept);
});

it.each(["10.80.0", "fd00::9::1", "bmc-7.example", "[fd00::9]", ""])("%j is not an IP address", (given) => {
  expect(IpAddress.safeParse(given).success).toBe(false);
});
