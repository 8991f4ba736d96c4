import { expect, it } from "vitest";
import { mayBeOneBmc } from "./power-address.ts";

it.each([
  ["one address", "10.0.0.1", "10.0.0.1", true],
  ["two spellings of one address", "https://[FD00::1]/redfish", "fd00:0::1", true],
  ["two addresses", "10.0.0.1", "10.0.0.2", false],
  ["an unknown address first", "", "10.0.0.1", true],
  ["an unknown address second", "10.0.0.1", " ", true],
  ["two unknown addresses", "", "", true],
])("%s may be the BMC of one machine, or cannot be", (_case, a, b, may) => {
  expect(mayBeOneBmc(a, b)).toBe(may);
});
