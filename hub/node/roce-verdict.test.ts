import { describe, expect, it } from "vitest";
import { compareAddresses } from "./roce-verdict.ts";

const nic = (name: string, ...ipv4: string[]) => ({ name, ipv4 });
const link = (name: string, ipAddress: string) => ({ interface: name, ipAddress });
const LINKS = [link("rail0", "172.30.0.1"), link("rail1", "172.30.1.1")];
const BOTH = [nic("eno1", "10.0.0.5"), nic("rail0", "172.30.0.1"), nic("rail1", "192.168.0.1", "172.30.1.1")];
const judge = (
  interfaces: typeof BOTH,
  { links = LINKS, required = true, unread = [] as "interfaces"[], known = false } = {},
) => {
  const seen = { interfaces, ...(unread.length === 0 ? {} : { unread }) };
  const verdict = compareAddresses(seen, { links, required }, known);
  return verdict && `${verdict.status} ${verdict.reason}: ${verdict.message}`;
};

describe("the RoCE addresses of a host", () => {
  it("are complete if each is on the interface of its row, among others", () => {
    expect(judge(BOTH)).toBe("True AllOnHost: The host has 2 of 2 RoCE addresses on their interfaces.");
    expect(judge(BOTH, { required: false })).toBe(judge(BOTH));
  });

  it.each([
    ["is missing", [nic("eno1", "10.0.0.5"), nic("rail0", "172.30.0.1"), nic("rail1")], "rail1 lacks 172.30.1.1"],
    ["has no interface", [nic("eno1", "10.0.0.5"), nic("rail0", "172.30.0.1")], "rail1 lacks 172.30.1.1"],
    [
      "is on another interface",
      [nic("rail0", "172.30.0.1"), nic("rail2", "172.30.1.1")],
      "rail2 has 172.30.1.1 instead of rail1",
    ],
    ["begins as another address", [nic("rail0", "172.30.0.1"), nic("rail1", "172.30.1.10")], "rail1 lacks 172.30.1.1"],
  ])("are incomplete if one %s, which bars only where the profile requires them", (_, interfaces, fault) => {
    const message = `The host has 1 of 2 RoCE addresses on their interfaces. ${fault}.`;
    expect(judge(interfaces)).toBe(`False AddressesMissing: ${message}`);
    expect(judge(interfaces, { required: false })).toBe(`False MissingButAllowed: ${message}`);
  });

  it("are all missing if the inventory shows no address at all, and an earlier one has shown some", () => {
    const said = judge([nic("eno1"), nic("rail0")], { known: true });
    expect(said).toMatch(/^False AddressesMissing: The host has 0 of 2 RoCE addresses/);
    expect(judge([], { known: true })).toBe(said);
  });

  it("are not judged if Muster set none, or if no inventory has shown any address", () => {
    expect(judge(BOTH, { links: [], known: true })).toBeNull();
    expect(judge([nic("eno1"), nic("rail0"), nic("rail1")])).toBeNull();
    expect(judge([])).toBeNull();
  });

  it("are unknown if the agent could not read the interfaces", () => {
    expect(judge([], { unread: ["interfaces"] })).toMatch(/^Unknown Unreadable: /);
    expect(judge([], { unread: ["interfaces"], required: false })).toMatch(/^Unknown MissingButAllowed: /);
    expect(judge([], { unread: ["interfaces"], links: [] })).toBeNull();
  });

  it("are named up to sixteen, and counted beyond", () => {
    const links = Array.from({ length: 18 }, (_, index) => link(`rail${index}`, `172.30.0.${index}`));
    const said = judge([nic("eno1", "10.0.0.5")], { links });
    expect(said).toContain("rail15 lacks 172.30.0.15; and 2 more.");
    expect(said).not.toContain("rail16");
  });
});
