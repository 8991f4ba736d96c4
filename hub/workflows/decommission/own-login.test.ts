import { describe, expect, it } from "vitest";
import { type JudgedLogin, judgeLogin, type KnownHost } from "./own-login.ts";

const MACHINE = { systemId: "abc123", hostname: "c01", bmcAddress: "10.0.0.1", macAddresses: ["aa:aa:aa:aa:aa:01"] };
const HOST: KnownHost = {
  hostname: "c01",
  onboarded: { ipmiIp: "10.0.0.1", pxeMac: "aa:aa:aa:aa:aa:01" },
  machine: MACHINE,
};
const OWN = { hostname: "c01", ipmi_ip: "10.0.0.1", pxe_mac: "aa:aa:aa:aa:aa:01" } as const;
const TYPES = ["hostname", "ipmi_ip", "pxe_mac"] as const;
type Type = (typeof TYPES)[number];
const login = (selectorType: Type, selectorValue: string = OWN[selectorType]): JudgedLogin => ({
  selectorType,
  selectorValue,
  isNewer: false,
});
const machine = (more: Partial<typeof MACHINE>): KnownHost => ({ ...HOST, machine: { ...MACHINE, ...more } });

describe.each(TYPES)("a BMC login by %s", (type) => {
  it("is the host's own if MAAS shows the selector at the node's machine and nobody else has it", () => {
    expect(judgeLogin(login(type), HOST, [])).toEqual({ kind: "own" });
    expect(judgeLogin(login(type), { ...HOST, onboarded: null }, [])).toEqual({ kind: "own" });
  });

  it("is another host's if nothing connects it with this host", () => {
    const other = { hostname: "c02", ipmi_ip: "10.0.0.2", pxe_mac: "aa:aa:aa:aa:aa:02" }[type];
    for (const host of [HOST, { ...HOST, machine: null }, { ...HOST, onboarded: null }])
      expect(judgeLogin(login(type, other), host, ["node c02"])).toEqual({ kind: "other" });
  });

  it.each<[string, JudgedLogin, KnownHost, readonly string[], string]>([
    [
      "it is newer than the request",
      { ...login(type), isNewer: true },
      HOST,
      [],
      "after the decommission was requested",
    ],
    ["the machine is not in MAAS", login(type), { ...HOST, machine: null }, [], "not in MAAS"],
    ["another host has the selector", login(type), HOST, ["node c02", "node c03"], "login of node c02, node c03"],
    [
      "MAAS shows something else at the machine",
      login(type),
      machine({ hostname: "c09", bmcAddress: "10.0.0.9", macAddresses: ["aa:aa:aa:aa:aa:09"] }),
      [],
      "may be another host's",
    ],
    [
      "MAAS knows nothing of the machine",
      login(type),
      machine({ hostname: "", bmcAddress: "", macAddresses: [] }),
      [],
      "may be another host's",
    ],
  ])("is kept if %s", (_why, one, host, others, reason) => {
    expect(judgeLogin(one, host, others)).toEqual({ kind: "kept", reason: expect.stringContaining(reason) });
  });
});

it("compares addresses in any spelling", () => {
  expect(judgeLogin(login("ipmi_ip"), machine({ bmcAddress: "https://10.0.0.1" }), [])).toEqual({ kind: "own" });
});

it("keeps the logins of both addresses after two hosts have swapped the addresses of their BMCs", () => {
  const swapped = machine({ bmcAddress: "10.0.0.2" });
  expect(judgeLogin(login("ipmi_ip", "10.0.0.1"), swapped, ["node c02"])).toMatchObject({ kind: "kept" });
  expect(judgeLogin(login("ipmi_ip", "10.0.0.2"), swapped, ["node c02"])).toMatchObject({ kind: "kept" });
});
