import { describe, expect, it } from "vitest";
import type { AdoptionDifferenceKind } from "../../shared/adoption.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { judgeBinding, type NodeToBind } from "./binding-rules.ts";
import { MACHINE, NOW } from "./machines.fixture.ts";
import type { AdoptionPolicy, MachineToAdopt, Surroundings } from "./rules.ts";

const AROUND: Surroundings = {
  boundTo: null,
  namesake: { id: "n-1", status: "active" },
  heldBy: null,
  hasTwin: false,
  elsewhere: null,
  bmc: "10.0.0.1",
  bmcSharedWith: null,
  roce: [],
};
const POLICY: AdoptionPolicy = {
  requireHwSync: true,
  syncIntervalSeconds: 900,
  image: "ubuntu/noble",
  architecture: "amd64/generic",
  appliesRoce: true,
  memoryGib: undefined,
  maasUser: "muster",
  accepted: new Set(),
  now: NOW,
};
const host = (gpus: number, mac = "b8:59:9f:00:00:01", uuid = "u-1"): NodeToBind["host"] => ({
  system: { manufacturer: "m", model: "m", uuid },
  interfaces: [{ name: "e0", mac, ipv4: [], speed_mbps: null }],
  gpus: Array.from({ length: gpus }, () => ({ vendor: "NVIDIA", model: "H100", bus: "", memory_bytes: null })),
});
const NODE: NodeToBind = {
  id: "n-1",
  hostname: "c07u41",
  status: "active",
  gpusTotal: 8,
  gpuVendor: "nvidia",
  host: host(8),
};
const judge = (
  node: Partial<NodeToBind>,
  machine: Partial<MachineToAdopt> = {},
  around: Partial<Surroundings> = {},
  accepted: readonly AdoptionDifferenceKind[] = [],
) => {
  const policy = { ...POLICY, accepted: new Set(accepted) };
  return judgeBinding({ ...NODE, ...node }, { ...MACHINE, ...machine }, { ...AROUND, ...around }, policy);
};
const codes = (...given: Parameters<typeof judge>) => judge(...given).refusals.map(({ code }) => code);

describe("a node of manual mode", () => {
  it("is bound to the machine that its host is, and is no namesake of itself", () => {
    expect(judge({})).toMatchObject({ outcome: "bound", gpus: { status: "True" }, differences: [], refusals: [] });
  });

  it.each(NODE_STATUSES)("that is %s is bound only if it is active or quarantined", (status) => {
    const bound = status === "active" || status === "quarantined";
    expect(codes({ status })).toEqual(bound ? [] : ["not_in_service"]);
  });

  it("is refused if its host is another host, or nobody knows which host it is", () => {
    expect(codes({ host: null })).toEqual(["host_unknown"]);
    expect(codes({ host: host(8, "b8:59:9f:00:00:02") })).toEqual(["other_host"]);
    expect(codes({ host: host(8, undefined, "u-2") })).toEqual(["other_host"]);
  });

  it("is refused if the machine has another hostname or another node, or is held", () => {
    expect(codes({}, { hostname: "c07u42" }, { namesake: null })).toEqual(["hostname_differs"]);
    expect(codes({}, {}, { boundTo: { id: "n-2", status: "active" } })).toEqual(["machine_taken"]);
    expect(codes({}, {}, { namesake: { id: "n-2", status: "active" } })).toEqual(["hostname_taken"]);
    expect(codes({}, {}, { heldBy: "w" })).toEqual(["held"]);
    expect(codes({}, { status: MAAS_STATUS.ready, statusName: "Ready" })).toEqual(["not_deployed"]);
  });

  it("with other GPUs than its SKU, or another difference, is bound only if the request accepts the kind", () => {
    expect(judge({ host: host(7) })).toMatchObject({ outcome: "refused", differences: [{ kind: "other_gpus" }] });
    expect(codes({ host: host(7) }, { locked: true }, {}, ["locked"])).toEqual(["difference"]);
    const both = judge({ host: host(7) }, { locked: true }).refusals;
    expect(both).toMatchObject([{ code: "difference", message: expect.stringContaining("(locked, other_gpus)") }]);
    expect(judge({ host: host(7) }, { locked: true }, {}, ["locked", "other_gpus"])).toMatchObject({
      outcome: "bound",
      gpus: { status: "False" },
      differences: [{ kind: "locked" }, { kind: "other_gpus" }],
    });
    expect(judge({ host: host(0) })).toMatchObject({ outcome: "bound", gpus: { status: "Unknown" } });
  });

  it("hears every reason at once", () => {
    const boundTo = { id: "n-2", status: "active" } as const;
    expect(codes({ host: null, status: "offline" }, { details: null, locked: true }, { boundTo })).toEqual([
      "machine_unreadable",
      "machine_taken",
      "not_in_service",
      "host_unknown",
    ]);
  });
});
