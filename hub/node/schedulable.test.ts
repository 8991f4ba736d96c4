import { describe, expect, it } from "vitest";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import type { ConditionFacts } from "./readiness-verdict.ts";
import { obstaclesOf, type SchedulingFacts, schedulability } from "./schedulable.ts";

const NODE: SchedulingFacts = {
  status: "active",
  cordonReason: null,
  generation: 2,
  policy: [],
  host: { networkOwnedBy: "muster", runsAgent: true },
  begunAt: new Date("2026-01-01T10:00:00Z"),
  now: new Date("2026-01-01T12:00:00Z"),
  hostClosed: false,
  tenant: null,
  overrides: [],
  repair: null,
  powerIntent: null,
  pastUnknown: false,
  baselineLack: [],
  claimImpossible: null,
};
const condition = (type: string, more: Partial<ConditionFacts> = {}): ConditionFacts => ({
  type,
  status: "True",
  reason: "Fine",
  generation: 2,
  expiresAt: null,
  receivedAt: new Date("2026-01-01T11:00:00Z"),
  changedAt: new Date("2026-01-01T10:30:00Z"),
  flappingSince: null,
  stale: false,
  ...more,
});
const GOOD = ["agent.connected", "agent.healthy", "os.booted", "hardware.sku"].map((type) => condition(type));
const MEND = "Read the condition's message in get-node, mend its cause on the host, and see that the agent runs";
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

  it("says of a host that is off by request who asked, and how it comes on again", () => {
    const powerIntent = { kind: "off", by: "ann", reason: "no need", since: new Date("2026-01-01T11:00:00Z") } as const;
    expect(reasons({ status: "offline", powerIntent })).toEqual([
      "the node is offline: its host was powered off at the request of ann (2026-01-01T11:00:00.000Z): no need. Power it on with power-node, or for its tenant with power-on-instance",
    ]);
    expect(reasons({ status: "retired", powerIntent })).toEqual(["the node is retired"]);
    expect(reasons({ powerIntent })).toEqual([expect.stringContaining("was powered off at the request of ann")]);
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
      `agent.healthy was never reported since this provisioning began at 2026-01-01T10:00:00.000Z. ${MEND}`,
    ],
    [
      "ill",
      {},
      withHealthy({ status: "False", reason: "DiskFull" }),
      `agent.healthy is False: DiskFull, since 2026-01-01T10:30:00.000Z. ${MEND}`,
    ],
    [
      "of unknown health",
      {},
      withHealthy({ status: "Unknown" }),
      `agent.healthy is Unknown: Fine, since 2026-01-01T10:30:00.000Z. ${MEND}`,
    ],
    [
      "stale",
      {},
      withHealthy({ stale: true, expiresAt: new Date("2026-01-01T11:10:00Z") }),
      `agent.healthy is stale since 2026-01-01T11:10:00.000Z. ${MEND}`,
    ],
    [
      "of an earlier provisioning",
      {},
      withHealthy({ generation: 1 }),
      `agent.healthy is of an earlier provisioning, and was not reported since this provisioning began at 2026-01-01T10:00:00.000Z. ${MEND}`,
    ],
  ])("is not schedulable while it is %s", (_what, node, conditions, reason) => {
    expect(schedulability({ ...NODE, ...node }, conditions)).toEqual({ schedulable: false, reasons: [reason] });
  });
});

describe("the readiness policy of a node's profile", () => {
  const asks = (type: string) => ({ type, status: "True", max_age_seconds: null, deadline_seconds: 10_800 }) as const;
  const policy = [{ all: [asks("fabric.ready")] }, { any: [asks("disk.ok"), asks("disk.waived")] }];

  it("names each lacking condition of a group all, and a group any as one obstacle", () => {
    const disk = condition("disk.ok", { status: "False", reason: "Worn" });
    expect(obstaclesOf({ ...NODE, policy }, [...GOOD, disk])).toEqual([
      {
        kind: "without_fabric.ready",
        text: "fabric.ready was never reported since this provisioning began at 2026-01-01T10:00:00.000Z. The hub waits for a report until 2026-01-01T13:00:00.000Z. Let the system that reports it send a readiness signal of the node's present generation",
      },
      {
        kind: "without_disk.ok_or_disk.waived",
        text: "its profile needs one of disk.ok, disk.waived: disk.ok is False: Worn, since 2026-01-01T10:30:00.000Z. Read the condition's message in get-node, and mend its cause; the system that reports it then says so; disk.waived was never reported since this provisioning began at 2026-01-01T10:00:00.000Z. The hub waits for a report until 2026-01-01T13:00:00.000Z. Let the system that reports it send a readiness signal of the node's present generation",
      },
    ]);
    expect(obstaclesOf({ ...NODE, policy }, [...GOOD, condition("fabric.ready"), condition("disk.waived")])).toEqual(
      [],
    );
  });
});
