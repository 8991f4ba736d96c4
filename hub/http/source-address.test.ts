import { describe, expect, it } from "vitest";
import { addressSet, sourceAddress } from "./source-address.ts";

const proxies = addressSet("10.0.0.7, 10.1.0.0/16,fd00::/8");

describe("the source address of a request", () => {
  it.each([
    ["of the socket, without a header", "192.0.2.1", undefined, "192.0.2.1"],
    ["of the socket, in IPv4 notation", "::ffff:192.0.2.1", undefined, "192.0.2.1"],
    ["of the socket, if the client is no proxy", "192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["from the header of a proxy", "10.0.0.7", "203.0.113.9", "203.0.113.9"],
    ["from the part that the proxies wrote", "10.0.0.7", "1.1.1.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"],
    ["from the header of an IPv6 proxy", "fd00::1", "2001:db8::5", "2001:db8::5"],
    ["of a proxy, if each hop is a proxy", "10.0.0.7", "10.1.0.1", "10.1.0.1"],
    ["of a proxy, if the header is no address", "10.0.0.7", "203.0.113.9, evil\n", "10.0.0.7"],
    ["of a proxy, if the header is empty", "10.0.0.7", "", "10.0.0.7"],
    ["unknown, without a socket", undefined, "203.0.113.9", null],
  ])("is %s", (_, socket, header, expected) => {
    expect(sourceAddress(socket, header, proxies)).toBe(expected);
  });

  it("ignores the header if no proxy is configured", () => {
    expect(sourceAddress("10.0.0.7", "203.0.113.9", null)).toBe("10.0.0.7");
  });

  it("looks at a bounded number of hops", () => {
    const long = Array(10_000).fill("10.1.0.1").join(",");
    expect(sourceAddress("10.0.0.7", long, proxies)).toBe("10.1.0.1");
  });
});

it.each(["", "10.0.0.7,", "10.0.0.0/33", "fd00::/129", "10.0.0.0/8/8", "proxy.example", "10.0.0.0/-1", "10.0.0.0/"])(
  "refuses %j as a set of addresses",
  (text) => {
    expect(addressSet(text)).toBeNull();
  },
);
