import { describe, expect, it } from "vitest";
import { type Candidate, choose, conflicting } from "./candidates.ts";

const BYS: readonly Candidate["by"][] = [
  ["hostname"],
  ["BMC address"],
  ["MAC address"],
  ["hostname", "BMC address"],
  ["hostname", "MAC address"],
  ["BMC address", "MAC address"],
  ["hostname", "BMC address", "MAC address"],
];
const OURS = "10.0.0.1";
/**
 * The test covers every kind of candidate; a candidate is a machine in MAAS that may be the requested host. A candidate that MAAS found by the BMC
 * address has the BMC of the requested host. A candidate that MAAS found only by name or MAC address has no known BMC, or the BMC of another host.
 */
const ALL: Candidate[] = BYS.flatMap((by) =>
  (by.includes("BMC address") ? [OURS] : ["", "10.0.0.2", "bmc.example.net"]).map((bmc) => ({
    systemId: "a",
    by,
    bmc,
  })),
);

describe("the choice of a host's machine", () => {
  it("is none if no machine was found", () => expect(choose([])).toEqual({ kind: "none" }));

  it.each(ALL)("is the only machine found by $by with BMC '$bmc', unless that is another host's BMC", (one) => {
    const contradicted = one.bmc !== "" && one.bmc !== OURS;
    expect(choose([one]).kind).toBe(contradicted ? "ambiguous" : "one");
  });

  it("is ambiguous among several machines, however each was found", () => {
    for (const one of ALL)
      for (const other of ALL) expect(choose([one, { ...other, systemId: "b" }]).kind).toBe("ambiguous");
  });

  it("shows a person how each possible machine was found", () => {
    const choice = choose([{ systemId: "a", by: ["hostname"], bmc: "10.0.0.2" }]);
    if (choice.kind !== "ambiguous") throw new Error("it was chosen");
    const failure = conflicting({ hostname: "host-1", ipmiIp: OURS, pxeMac: null }, choice.told);
    expect(failure.evidence).toEqual({ candidates: ["a (hostname, BMC 10.0.0.2)"] });
    expect(failure.message).toContain("1 machine that may be host-1 with BMC 10.0.0.1");
  });
});
