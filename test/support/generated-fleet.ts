import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { sql } from "../../hub/db/orm.ts";
import {
  allocations,
  nodeAdoptions,
  nodeBaselines,
  nodeConditions,
  nodeDecommissions,
  nodeHealthOverrides,
  nodeInventories,
  nodeMaasState,
  nodeOnboardings,
  nodes,
  repairCases,
  tasks,
  workflows,
} from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { ALLOCATION_STATUSES, type AllocationStatus } from "../../shared/allocation-status.ts";
import type { NetworkOwner } from "../../shared/external-attempt.ts";
import { FAILURE_CLASSES } from "../../shared/failures.ts";
import { FLAPPING } from "../../shared/flapping.ts";
import { AllocationId, NodeId, type ProfileId, type SiteId, TaskId, WorkflowId } from "../../shared/ids.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import type { OnboardingMode } from "../../shared/onboarding-mode.ts";
import { ENDED_STATES, REPAIR_STATE_NAMES, type RepairState } from "../../shared/repair.ts";
import { TASK_STATES } from "../../shared/task-state.ts";
import { EMPTY_SNAPSHOT } from "./agent-results.ts";
import { conditions, NEEDED, oftenUsual, USUAL } from "./generated-conditions.ts";

/** The places to which generated nodes may belong: sites with a profile for each way in which the hub cleans a node. */
export interface FleetWorld {
  readonly sites: readonly { readonly siteId: SiteId; readonly profiles: readonly ProfileId[] }[];
  readonly skus: readonly string[];
}

const OPEN = ALLOCATION_STATUSES.filter((status) => status !== "ended");

/** All facts about one node that decide whether the node may take work, and by which people look for the node. */
const fact = fc.record({
  status: oftenUsual<(typeof NODE_STATUSES)[number]>("active", fc.constantFrom(...NODE_STATUSES)),
  site: fc.option(fc.nat(1), { freq: 9 }),
  sku: fc.nat(3),
  room: fc.option(fc.constantFrom("A", "B")),
  rack: fc.option(fc.constantFrom("r1", "r2", "r 3")),
  unit: fc.option(fc.integer({ min: 1, max: 48 })),
  manual: fc.boolean(),
  network: oftenUsual<NetworkOwner>("muster", fc.constant("operator")),
  runsAgent: oftenUsual(true, fc.constant(false)),
  /**
   * For an adopted node, the number of its profile, and whether anybody knows who used its host before. No request leaves the row of an adoption to a
   * node of manual mode, but the SQL and the pure function must agree on such a node too.
   */
  adopted: oftenUsual<{ profile: number; pastUnknown: boolean } | null>(
    null,
    fc.record({ profile: fc.nat(3), pastUnknown: fc.boolean() }),
  ),
  /** The state of the node's newest repair case. */
  repair: oftenUsual<RepairState | null>(null, fc.constantFrom(...REPAIR_STATE_NAMES)),
  /** The decommissions of the node, each with the number of generations by which the released one is older than the node; null without a release. */
  decommissions: oftenUsual<readonly (number | null)[]>(
    [],
    fc.array(fc.option(fc.nat(1), { freq: 2 }), { minLength: 1, maxLength: 2 }),
  ),
  gpus: fc.constantFrom(0, 8, 16, 32),
  generation: fc.integer({ min: 1, max: 2 }),
  cordon: oftenUsual<string | null>(null, fc.constant("a fan is loud")),
  profile: fc.option(fc.nat(3), { freq: 4 }),
  earlierProfile: fc.option(fc.nat(3), { freq: 2 }),
  /** The status of the node's open allocation. */
  allocated: oftenUsual<AllocationStatus | null>(null, fc.constantFrom(...OPEN)),
  endedAllocations: oftenUsual(0, fc.integer({ min: 1, max: 2 })),
  overrides: oftenUsual<readonly GeneratedOverride[]>(
    [],
    fc.uniqueArray(
      fc.record({
        source: fc.constantFrom("disk-erase", "restore", "degraded", "validation", "mark-healthy"),
        replaces: fc.boolean(),
        /** The classifications of the override's alerts; null for an override of Muster's own. */
        alerts: fc.option(fc.array(fc.constantFrom("PreventAllocations", "Hardware"), { maxLength: 2 }), { freq: 3 }),
        life: fc.constantFrom("endless" as const, "fresh" as const, "expired" as const),
      }),
      { minLength: 1, maxLength: 3, selector: ({ source }) => source },
    ),
  ),
  baseline: oftenUsual<"whole" | "partial" | "empty" | "none">("whole", fc.constantFrom("partial", "empty", "none")),
  baselineBehind: oftenUsual(0, fc.constant(1)),
  closings: oftenUsual<{ type: string; state: (typeof TASK_STATES)[number]; attempts: number; plan: boolean }[]>(
    [],
    fc.array(
      fc.record({
        type: fc.constantFrom("node.drain", "node.undrain", "node.heartbeat_check"),
        state: fc.constantFrom(...TASK_STATES, "succeeded" as const),
        attempts: fc.nat(1),
        plan: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  ),
  failure: oftenUsual<string | null>(null, fc.constantFrom(...FAILURE_CLASSES)),
  conditions,
});
export type GeneratedNode = typeof fact extends fc.Arbitrary<infer T> ? T : never;

interface GeneratedOverride {
  readonly source: string;
  readonly replaces: boolean;
  readonly alerts: readonly string[] | null;
  readonly life: "endless" | "fresh" | "expired";
}
const ALERT = { target: null, message: "a fan is loud", tenant_message: null };

/** A node that may take work. */
const SCHEDULABLE: Partial<GeneratedNode> = {
  status: "active",
  site: 0,
  sku: 0,
  manual: false,
  network: "muster",
  runsAgent: true,
  adopted: null,
  repair: null,
  decommissions: [],
  gpus: 8,
  cordon: null,
  profile: 0,
  allocated: null,
  endedAllocations: 0,
  overrides: [],
  baseline: "whole",
  baselineBehind: 0,
  closings: [],
  conditions: Object.fromEntries([...NEEDED, "fabric.ready", "disk.ok"].map((type) => [type, USUAL])),
};
/**
 * The past of an adopted node: whether somebody knows who used its host, which the first release of its machine ends, and how the hub cleans the node
 * after its next tenant.
 */
const past = fc.record({
  manual: fc.boolean(),
  adopted: fc.record({ profile: fc.nat(3), pastUnknown: fc.boolean() }),
  decommissions: fc.array(fc.option(fc.nat(1), { freq: 2 }), { minLength: 1, maxLength: 2 }),
  endedAllocations: fc.nat(2),
  profile: fc.constantFrom(0, 1, null),
  baseline: fc.constantFrom<GeneratedNode["baseline"][]>("whole", "none"),
});

/**
 * A node that differs from a schedulable node in one or two kinds of facts, or in its past. Among nodes with any facts, one fact rarely decides alone, so
 * a wrong rule for the fact would seldom show.
 */
const nearlySchedulable: fc.Arbitrary<GeneratedNode> = fc
  .tuple(
    fact,
    fc.constantFrom("conditions", ...Object.keys(SCHEDULABLE)),
    fc.constantFrom("conditions", "manual", "generation", "past"),
    past,
  )
  .map(([node, one, other, known]) => ({
    ...node,
    ...Object.fromEntries(Object.entries(SCHEDULABLE).filter(([name]) => ![one, other].includes(name))),
    ...(other === "past" ? known : {}),
  }));

export const generatedFleet = (size: number): fc.Arbitrary<GeneratedNode[]> =>
  fc.array(fc.oneof(fact, nearlySchedulable), { minLength: size, maxLength: size });

const last4 = (index: number): string => index.toString(16).padStart(4, "0");
/** The MAC address, the disk serial number and the BMC's address of a generated node, by its number. */
export const macOf = (index: number): string => `02:00:00:00:${last4(index).slice(0, 2)}:${last4(index).slice(2)}`;
export const serialOf = (index: number): string => `SN-${last4(index)}`;
export const bmcOf = (index: number): string => `10.9.${index >> 8}.${index & 255}`;

const ITEMS = Object.entries(EMPTY_SNAPSHOT);
const SNAPSHOTS = {
  whole: EMPTY_SNAPSHOT,
  partial: Object.fromEntries(ITEMS.slice(1)),
  empty: null,
} as const;

/** Writes generated nodes with all their facts. The nodes' names begin with `prefix`. */
export async function writeFleet(
  tx: Tx,
  world: FleetWorld,
  { facts, prefix }: { readonly facts: readonly GeneratedNode[]; readonly prefix: string },
): Promise<NodeId[]> {
  const rows = facts.map((one, index) => ({
    one,
    index,
    id: NodeId.parse(randomUUID()),
    hostname: `${prefix}${index}`,
    site: one.site === null ? null : (world.sites[one.site] ?? null),
  }));
  await tx.insert(nodes).values(
    rows.map(({ one, id, hostname, site, index }) => ({
      id,
      hostname,
      siteId: site?.siteId ?? null,
      sku: world.skus[one.sku] ?? "unknown",
      gpusTotal: one.gpus,
      regionCode: "r1",
      room: one.room,
      rack: one.rack,
      unit: one.rack === null ? null : one.unit,
      host: `10.1.${index >> 8}.${index & 255}`,
      status: one.status,
      onboardingMode: modeOf(one),
      networkOwnedBy: one.network,
      runsAgent: one.runsAgent,
      generation: one.generation,
      cordonReason: one.cordon,
      operationId: one.status === "draining" || one.status === "removing" ? randomUUID() : null,
    })),
  );
  for (const row of rows) await writeFacts(tx, row);
  return rows.map(({ id }) => id);
}

const modeOf = ({ manual, adopted }: GeneratedNode): OnboardingMode =>
  manual ? "manual" : adopted === null ? "maas" : "adopted";

interface Row {
  readonly one: GeneratedNode;
  readonly index: number;
  readonly id: NodeId;
  readonly hostname: string;
  readonly site: FleetWorld["sites"][number] | null;
}

async function writeFacts(tx: Tx, { one, index, id, hostname, site }: Row): Promise<void> {
  const said = Object.entries(one.conditions).flatMap(([type, value]) => (value === null ? [] : [{ type, ...value }]));
  if (said.length > 0)
    await tx.insert(nodeConditions).values(
      said.map(({ type, status, reason, behind, life, age, flaps }) => ({
        nodeId: id,
        type,
        status,
        reason,
        message: "",
        generation: one.generation - behind,
        source: "agent",
        observedAt: sql`now()`,
        receivedAt: sql`now() - make_interval(hours => ${age})`,
        changedAt: sql`now() - make_interval(secs => ${FLAPPING.holdSeconds + (flaps === "over" ? 60 : -60)})`,
        flappingSince: flaps === "no" ? null : sql`now() - interval '1 hour'`,
        expiresAt: life === "endless" ? null : sql`now() + make_interval(hours => ${life === "fresh" ? 9 : -9})`,
      })),
    );
  if (site !== null) {
    const systemId = `m${hostname}`;
    await tx
      .insert(nodeMaasState)
      .values({ nodeId: id, siteId: site.siteId, maasSystemId: systemId, ipmiIp: bmcOf(index) });
    await writeAdoption(tx, { one, id, site });
    for (const [age, profile] of [one.profile, one.earlierProfile].entries())
      if (profile !== null)
        await writeOnboarding(tx, { id, hostname, site }, { profile, age, failure: age === 0 ? one.failure : null });
  }
  await writeAllocations(tx, { one, id, hostname, site });
  await writeRepair(tx, { one, id, hostname, site });
  await writeDecommissions(tx, { one, id, hostname });
  for (const [place, { source, replaces, alerts, life }] of one.overrides.entries()) {
    // A node has at most one replacement.
    const mode = replaces && one.overrides.findIndex((other) => other.replaces) === place ? "replace" : "merge";
    await tx.insert(nodeHealthOverrides).values({
      ...{ nodeId: id, source, mode, reason: "not erased", setBy: "test" },
      alerts: alerts?.map((name) => ({ ...ALERT, id: name, classifications: [name] })) ?? null,
      preventsAllocations: alerts?.includes("PreventAllocations") ?? true,
      expiresAt: life === "endless" ? null : sql`now() + make_interval(hours => ${life === "fresh" ? 9 : -9})`,
    });
  }
  if (one.baseline !== "none") {
    const taken = { snapshot: SNAPSHOTS[one.baseline], requestedBy: "hub", reason: "a test" };
    const generation = one.generation - one.baselineBehind;
    await tx.insert(nodeBaselines).values({ nodeId: id, generation, taskId: TaskId.parse(randomUUID()), ...taken });
  }
  await tx.insert(nodeInventories).values({
    nodeId: id,
    inventory: {
      interfaces: [{ mac: macOf(index).toUpperCase() }],
      disks: [{ serial: serialOf(index) }],
      system: { uuid: id },
    },
  });
  if (one.closings.length > 0)
    await tx.insert(tasks).values(
      one.closings.map(({ type, state, attempts, plan }, age) => ({
        nodeId: id,
        type,
        state,
        attempts,
        input: plan ? { plan } : {},
        idempotencyKey: randomUUID(),
        deadline: sql`now()`,
        createdAt: sql`now() + make_interval(secs => ${age})`,
      })),
    );
}

async function writeAllocations(tx: Tx, { one, id, hostname, site }: Omit<Row, "index">): Promise<void> {
  const ended = Array.from({ length: one.endedAllocations }, () => "ended" as const);
  const all: AllocationStatus[] = one.allocated === null ? ended : [...ended, one.allocated];
  if (all.length === 0) return;
  const facts = { hostname, generation: one.generation, tenant: "acme", loginUser: "ada", sshKeys: [], labels: {} };
  await tx.insert(allocations).values(
    all.map((status) => ({
      ...facts,
      id: AllocationId.parse(randomUUID()),
      nodeId: id,
      siteId: site?.siteId ?? null,
      grantsRoot: false,
      status,
      endedAt: status === "ended" ? sql`now()` : null,
      createdBy: "test",
    })),
  );
}

async function writeRepair(tx: Tx, { one, id, hostname, site }: Omit<Row, "index">): Promise<void> {
  if (one.repair === null) return;
  const ended = (ENDED_STATES as readonly RepairState[]).includes(one.repair);
  await tx.insert(repairCases).values({
    ...{ nodeId: id, hostname, siteId: site?.siteId ?? null, mode: "full", state: one.repair, openedBy: "test" },
    ...{ category: "Other", summary: "a fan is loud", claimedBy: "test", claimUntil: sql`now()` },
    endedAt: ended ? sql`now()` : null,
  });
}

async function writeDecommissions(tx: Tx, { one, id, hostname }: Pick<Row, "one" | "id" | "hostname">): Promise<void> {
  const all = one.decommissions.map((behind) => ({ behind, decommissionId: WorkflowId.parse(randomUUID()) }));
  if (all.length === 0) return;
  const about = { kind: "decommission", stage: "release_maas_node", status: "completed" as const, input: {} };
  await tx.insert(workflows).values(all.map(({ decommissionId }) => ({ id: decommissionId, ...about })));
  const asked = { nodeId: id, hostname, mode: "reimage" as const, reason: "a test", priorStatus: "active" as const };
  await tx.insert(nodeDecommissions).values(
    all.map(({ behind, decommissionId }) => ({
      ...asked,
      decommissionId,
      releasedGeneration: behind === null ? null : one.generation - behind,
    })),
  );
}

async function writeAdoption(
  tx: Tx,
  { one, id, site }: Pick<Row, "one" | "id"> & { readonly site: FleetWorld["sites"][number] },
): Promise<void> {
  if (one.adopted === null) return;
  await tx.insert(nodeAdoptions).values({
    nodeId: id,
    siteId: site.siteId,
    profileId: site.profiles[one.adopted.profile] as ProfileId,
    adoptedBy: "test",
    pastUnknown: one.adopted.pastUnknown,
    wasManual: one.manual,
    differences: [],
  });
}

async function writeOnboarding(
  tx: Tx,
  { id, hostname, site }: Pick<Row, "id" | "hostname"> & { readonly site: FleetWorld["sites"][number] },
  { profile, age, failure }: { readonly profile: number; readonly age: number; readonly failure: string | null },
): Promise<void> {
  const onboardingId = WorkflowId.parse(randomUUID());
  const status = failure === null ? "completed" : "failed_retryable";
  const about = { kind: "onboard", stage: "deploy_via_maas", input: {}, failureClass: failure };
  await tx.insert(workflows).values({ id: onboardingId, siteId: site.siteId, status, ...about });
  await tx.insert(nodeOnboardings).values({
    onboardingId,
    nodeId: id,
    siteId: site.siteId,
    profileId: site.profiles[profile] as ProfileId,
    skuId: "s",
    hostname,
    ipmiIp: "10.0.0.1",
    createdAt: sql`now() - make_interval(secs => ${age})`,
  });
}
