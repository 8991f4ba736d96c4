import { describe, expect, it } from "vitest";
import { hostOf, plainAddress, portOf } from "./addresses.ts";

describe("an address", () => {
  it.each([
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["::FFFF:A00:1", "10.0.0.1"],
    ["FE80::1", "fe80::1"],
    ["::ffff:0:a00:1", "::ffff:0:a00:1"],
  ])("%s is %s", (written, plain) => {
    expect(plainAddress(written)).toBe(plain);
  });

  it("of a socket that has none is null", () => {
    expect(plainAddress(undefined)).toBeNull();
  });

  it.each([
    ["http://[::1]/", "::1", 80],
    ["https://Hub.Example/x", "hub.example", 443],
    ["http://10.0.0.1:5240/MAAS", "10.0.0.1", 5240],
  ])("of %s has its host and port", (url, host, port) => {
    expect([hostOf(new URL(url)), portOf(new URL(url))]).toEqual([host, port]);
  });
});
