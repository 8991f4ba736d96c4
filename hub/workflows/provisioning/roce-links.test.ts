import { describe, expect, it } from "vitest";
import type { MaasInterface } from "../../maas/port.ts";
import { planLinks } from "./roce-links.ts";

const nic = (name: string, id: number, ...links: [mode: string, ipAddress: string | null][]): MaasInterface =>
  ({
    id,
    name,
    links: links.map(([mode, ipAddress], index) => ({ id: id * 10 + index, mode, ipAddress, subnetId: 1 })),
  }) as unknown as MaasInterface;
const at = (name: string, ipAddress: string) => ({ interface: name, ipAddress });
const told = (plan: ReturnType<typeof planLinks>) => ({
  stale: plan.stale.map(({ linkId }) => linkId),
  foreign: plan.foreign.map(({ linkId }) => linkId),
});

describe("the STATIC links of a machine", () => {
  it("stay where a row names them, whoever made them", () => {
    expect(told(planLinks([nic("r0", 1, ["static", "10.0.0.1"])], [at("r0", "10.0.0.1")], []))).toEqual({
      stale: [],
      foreign: [],
    });
  });

  it("go where a row has named them and none does any more, on whichever interface", () => {
    const nics = [nic("r0", 1, ["static", "10.0.0.1"], ["static", "10.0.0.9"]), nic("r1", 2, ["static", "10.0.1.1"])];
    const ours = [at("r0", "10.0.0.1"), at("r0", "10.0.0.9"), at("r1", "10.0.1.1")];
    expect(told(planLinks(nics, [at("r0", "10.0.0.9")], ours))).toEqual({ stale: [10, 20], foreign: [] });
    expect(told(planLinks(nics, [], ours))).toEqual({ stale: [10, 11, 20], foreign: [] });
  });

  it("go from the one interface where two rows have exchanged their addresses", () => {
    const nics = [nic("r0", 1, ["static", "10.0.0.1"]), nic("r1", 2, ["static", "10.0.0.2"])];
    const ours = [at("r0", "10.0.0.1"), at("r1", "10.0.0.2")];
    expect(told(planLinks(nics, [at("r0", "10.0.0.2"), at("r1", "10.0.0.1")], ours))).toEqual({
      stale: [10, 20],
      foreign: [],
    });
  });

  it("are told where somebody else put them beside a row's, and are nobody's matter on other interfaces", () => {
    const nics = [
      nic("r0", 1, ["static", "10.0.0.1"], ["static", "10.7.7.7"]),
      nic("eno1", 2, ["static", "192.0.2.1"]),
    ];
    expect(told(planLinks(nics, [at("r0", "10.0.0.1")], []))).toEqual({ stale: [], foreign: [11] });
  });

  it("are STATIC and have an address: others are MAAS's own", () => {
    const nics = [nic("r0", 1, ["auto", "10.0.0.1"], ["static", null], ["link_up", null])];
    expect(told(planLinks(nics, [at("r0", "10.0.0.2")], [at("r0", "10.0.0.1")]))).toEqual({ stale: [], foreign: [] });
  });
});
