import { describe, expect, it } from "vitest";
import { AllocationId, NodeId, ProfileId, WorkflowId } from "../../shared/ids.ts";
import type { ReadinessPolicy } from "../../shared/readiness-policy.ts";
import type { Node } from "../db/schema/index.ts";
import { type Candidate, obstaclesToAllocation } from "./free-node.ts";

const nodeId = NodeId.parse("11111111-1111-4111-8111-111111111111");
const heldBy = WorkflowId.parse("22222222-2222-4222-8222-222222222222");
const id = AllocationId.parse("33333333-3333-4333-8333-333333333333");
const NODE: Node = {
  id: nodeId,
  hostname: "h",
  siteId: null,
  host: null,
  port: 22,
  sku: "s",
  gpusTotal: 8,
  regionCode: "r",
  room: null,
  rack: null,
  unit: null,
  assetTag: null,
  locationVersion: 0,
  status: "active",
  onboardingMode: "maas",
  networkOwnedBy: "muster",
  runsAgent: true,
  accessMethod: "node_agent",
  sshUsername: "root",
  generation: 1,
  generationBeganAt: new Date(0),
  cordonReason: null,
  cordonOwner: null,
  quarantinedBy: null,
  operationId: null,
  lastAgentContactAt: null,
  createdAt: new Date(0),
  updatedAt: new Date(0),
};
const condition = (type: string) => ({
  nodeId,
  type,
  status: "True" as const,
  reason: "Fine",
  generation: 1,
  source: "agent" as const,
  observedAt: new Date(0),
  receivedAt: new Date(0),
  changedAt: new Date(0),
  expiresAt: null,
  flappingSince: null,
  stale: false,
});
const candidate = (node: Partial<Node> = {}, more: Partial<Candidate["row"]> = {}): Candidate => ({
  row: {
    node: { ...NODE, ...node },
    session: null,
    maasSystemId: null,
    conditions: ["agent.connected", "agent.healthy", "os.booted", "hardware.sku"].map(condition),
    hostClosed: false,
    overrides: [],
    allocation: null,
    repair: null,
    power: null,
    pastUnknown: false,
    baselineLack: [],
    policy: null,
    now: new Date(0),
    gpuVendor: "nvidia",
    cursor: [],
    ...more,
  },
  heldBy: null,
});
const PROFILE = {
  profileId: ProfileId.parse("44444444-4444-4444-8444-444444444444"),
  profileName: "p",
  readinessPolicy: [] as ReadinessPolicy,
  softResetAfterRoot: false,
} as const;
const kinds = (one: Candidate, root = false) => obstaclesToAllocation(one, root).map(({ kind }) => kind);

describe("what keeps a node from an allocation", () => {
  it("is each of its health overrides", () => {
    const override = {
      nodeId,
      target: null,
      neededErase: null,
      reason: "not erased",
      setBy: "operator:ann",
      since: new Date(0),
      mode: "merge" as const,
      alerts: null,
      preventsAllocations: true,
      expiresAt: null,
      revision: 1,
    };
    const overrides = ["disk-erase", "repair"].map((source) => ({ ...override, source }));
    expect(kinds(candidate({}, { overrides }))).toEqual(["health_override", "health_override"]);
  });

  it("is nothing for a free node", () => {
    expect(kinds(candidate())).toEqual([]);
  });

  it("is first its tenant, then the operation that holds it, then everything else", () => {
    const { row } = candidate({ status: "offline", cordonReason: "checked" });
    const taken = { ...row, allocation: { id, nodeId, tenant: "acme", status: "active" as const } };
    expect(kinds({ row: taken, heldBy }, true)).toEqual([
      "allocated",
      "held_by_operation",
      "offline",
      "cordoned",
      "root_not_allowed",
    ]);
  });

  it("is a missing or incomplete baseline if a soft reset would clean the node", () => {
    const policy = { ...PROFILE, turnoverMode: "soft_reset", gpuClaimLevel: "reset_only" } as const;
    const bare = { baselineLack: null };
    expect(kinds(candidate({}, { ...bare, policy }))).toEqual(["no_baseline"]);
    expect(kinds(candidate({}, { ...bare, policy }), true)).toEqual([]);
    expect(kinds(candidate({}, { ...bare, policy: { ...policy, turnoverMode: "reimage" } }))).toEqual([]);
    expect(kinds(candidate({ onboardingMode: "manual" }, bare))).toEqual(["no_baseline"]);
    expect(kinds(candidate({ status: "offline" }, bare))).toEqual(["offline"]);
    expect(kinds(candidate({}, { baselineLack: ["disks"], policy }))).toEqual(["incomplete_baseline"]);
    expect(kinds(candidate({}, { baselineLack: ["disks"], policy }), true)).toEqual([]);
  });

  it("is a level of GPU memory that no cleaning reaches", () => {
    const policy = { ...PROFILE, turnoverMode: "reimage", gpuClaimLevel: "overwritten" } as const;
    expect(kinds(candidate({}, { policy }))).toEqual([]);
    expect(kinds(candidate({}, { policy, gpuVendor: "none" }))).toEqual(["gpu_claim_impossible"]);
    expect(kinds(candidate({}, { policy, gpuVendor: null }), true)).toEqual(["gpu_claim_impossible"]);
    expect(kinds(candidate({ gpusTotal: 17 }, { policy }))).toEqual(["gpu_claim_impossible"]);
  });

  it("is root only if nothing can clean the node after a tenant with root", () => {
    const policy = { ...PROFILE, turnoverMode: "soft_reset", gpuClaimLevel: "reset_only" } as const;
    expect(kinds(candidate(), true)).toEqual(["root_not_allowed"]);
    expect(kinds(candidate({ onboardingMode: "manual" }, { policy }), true)).toEqual(["root_not_allowed"]);
    expect(kinds(candidate({ onboardingMode: "maas" }, { policy }), true)).toEqual([]);
    expect(kinds(candidate(), false)).toEqual([]);
  });
});
