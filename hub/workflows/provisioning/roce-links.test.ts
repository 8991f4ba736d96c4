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
  it("stay if a RoCE row names them, whoever made them", () => {
    expect(told(planLinks([nic("r0", 1, ["static", "10.0.0.1"])], [at("r0", "10.0.0.1")], []))).toEqual({
      stale: [],
      foreign: [],
    });
  });

  it("are removed from any interface if a RoCE row named them before and none does now", () => {
    const nics = [nic("r0", 1, ["static", "10.0.0.1"], ["static", "10.0.0.9"]), nic("r1", 2, ["static", "10.0.1.1"])];
    const ours = [at("r0", "10.0.0.1"), at("r0", "10.0.0.9"), at("r1", "10.0.1.1")];
    expect(told(planLinks(nics, [at("r0", "10.0.0.9")], ours))).toEqual({ stale: [10, 20], foreign: [] });
    expect(told(planLinks(nics, [], ours))).toEqual({ stale: [10, 11, 20], foreign: [] });
  });

  it("are removed from both interfaces if two RoCE rows exchange their addresses", () => {
    const nics = [nic("r0", 1, ["static", "10.0.0.1"]), nic("r1", 2, ["static", "10.0.0.2"])];
    const ours = [at("r0", "10.0.0.1"), at("r1", "10.0.0.2")];
    expect(told(planLinks(nics, [at("r0", "10.0.0.2"), at("r1", "10.0.0.1")], ours))).toEqual({
      stale: [10, 20],
      foreign: [],
    });
  });

  it("are reported if somebody else made them on an interface of a RoCE row, and ignored on other interfaces", () => {
    const nics = [
      nic("r0", 1, ["static", "10.0.0.1"], ["static", "10.7.7.7"]),
      nic("eno1", 2, ["static", "192.0.2.1"]),
    ];
    expect(told(planLinks(nics, [at("r0", "10.0.0.1")], []))).toEqual({ stale: [], foreign: [11] });
  });

  it("do not include links of other modes or without an address", () => {
    const nics = [nic("r0", 1, ["auto", "10.0.0.1"], ["static", null], ["link_up", null])];
    expect(told(planLinks(nics, [at("r0", "10.0.0.2")], [at("r0", "10.0.0.1")]))).toEqual({ stale: [], foreign: [] });
  });
});
