import { describe, expect, it } from "vitest";
import type { Bars } from "../../shared/condition-types.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { barredBy, type ConditionFacts, type SchedulingFacts, schedulability } from "./schedulable.ts";

const NODE: SchedulingFacts = {
  status: "active",
  cordonReason: null,
  generation: 2,
  hostClosed: false,
  tenant: null,
  overrides: [],
  pastUnknown: false,
  baselineLack: [],
  claimImpossible: null,
};
const condition = (type: string, more: Partial<ConditionFacts> = {}): ConditionFacts => ({
  type,
  status: "True",
  reason: "Fine",
  generation: 2,
  stale: false,
  ...more,
});
const GOOD = [condition("agent.connected"), condition("agent.healthy"), condition("os.booted")];
const reasons = (node: Partial<SchedulingFacts>, conditions: readonly ConditionFacts[] = GOOD) =>
  schedulability({ ...NODE, ...node }, conditions).reasons;
const withHealthy = (more: Partial<ConditionFacts>) => [
  ...GOOD.slice(0, 1),
  condition("agent.healthy", more),
  ...GOOD.slice(2),
];

describe("a node is schedulable", () => {
  it("is schedulable if it is active, not cordoned, and every required condition holds now", () => {
    expect(schedulability(NODE, GOOD)).toEqual({ schedulable: true, reasons: [] });
    expect(reasons({}, [...GOOD, condition("site.extra", { status: "False" })])).toEqual([]);
  });

  it.each(NODE_STATUSES.filter((status) => status !== "active"))("is not schedulable while it is %s", (status) => {
    expect(reasons({ status })).toEqual([`the node is ${status}`]);
  });

  it.each([
    [
      "on a host that is closed still",
      { hostClosed: true },
      GOOD,
      "its host still keeps users out after a drain, because node.undrain has not succeeded; activate the node again to retry",
    ],
    ["cordoned", { cordonReason: "soft reset" }, GOOD, "cordoned: soft reset"],
    ["allocated", { tenant: "acme" }, GOOD, "allocated to acme"],
    [
      "with a health override",
      { overrides: [{ source: "disk-erase", reason: "not erased" }] },
      GOOD,
      "health override disk-erase: not erased. When its cause is gone, remove it with remove-node-health-override",
    ],
    [
      "without a baseline",
      { baselineLack: null },
      GOOD,
      "it has no residue baseline, so no soft reset could show that the host is clean after a tenant. The hub takes one while the agent is connected: look at get-node-baseline. For a node that already had a tenant, use take-node-baseline or reimage it",
    ],
    [
      "with an incomplete baseline",
      { baselineLack: ["disks"] },
      GOOD,
      "it has a residue baseline without disks, so no soft reset could show that the host is clean after a tenant. Update its agent: the hub then takes a new baseline unless the node had a tenant. If it had one, reimage the node",
    ],
    [
      "of a GPU level that no cleaning reaches",
      { claimImpossible: "its GPUs are of AMD" },
      GOOD,
      "no cleaning after a tenant could meet gpu_claim_level of its profile: its GPUs are of AMD. Change gpu_claim_level of the profile, or the SKU",
    ],
    [
      "silent on its health",
      {},
      GOOD.filter((one) => one.type !== "agent.healthy"),
      "agent.healthy was never reported",
    ],
    ["ill", {}, withHealthy({ status: "False", reason: "DiskFull" }), "agent.healthy is False: DiskFull"],
    ["of unknown health", {}, withHealthy({ status: "Unknown" }), "agent.healthy is Unknown: Fine"],
    ["stale", {}, withHealthy({ stale: true }), "agent.healthy is stale"],
    ["of an earlier provisioning", {}, withHealthy({ generation: 1 }), "agent.healthy is of an earlier provisioning"],
  ])("is not schedulable while it is %s", (_what, node, conditions, reason) => {
    expect(schedulability({ ...NODE, ...node }, conditions)).toEqual({ schedulable: false, reasons: [reason] });
  });
});

describe("a condition that may bar work", () => {
  const STATUSES = ["True", "False", "Unknown"] as const;
  const CASES = [
    undefined,
    condition("t", { generation: 1 }),
    ...STATUSES.flatMap((status) => [false, true].map((stale) => condition("t", { status, stale }))),
  ];
  const told = (one: ConditionFacts | undefined) =>
    one === undefined ? "missing" : one.generation !== 2 ? "old" : one.stale ? `stale ${one.status}` : one.status;
  const letThrough = (bars: Bars) => CASES.filter((one) => barredBy("t", bars, one, 2) === null).map(told);

  it("bars work except in the statuses that its rule allows; stale counts as Unknown, and Unknown bars", () => {
    expect(letThrough("missing_or_not_true")).toEqual(["True"]);
    expect(letThrough("not_true")).toEqual(["missing", "old", "True"]);
    expect(letThrough("never")).toEqual(CASES.map(told));
  });
});
