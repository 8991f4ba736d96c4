import { expect } from "vitest";
import { and, eq, isNull } from "../../hub/db/orm.ts";
import { isHostReleased } from "../../hub/db/queries/machine-releases.ts";
import { hasTaskOf } from "../../hub/db/queries/task-reads.ts";
import {
  enrollmentTokens,
  nodeCertificates,
  nodes,
  tasks,
  type Workflow as WorkflowRow,
} from "../../hub/db/schema/index.ts";
import { openHost } from "../../hub/node/open-host.ts";
import { CLEANING_TASKS } from "../../hub/workflows/decommission/cleaning-tasks.ts";
import { ONBOARD } from "../../hub/workflows/onboarding/onboard.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowServices } from "../../hub/workflows/services.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { clean, decommission, playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { retiredHost, startRelease } from "../support/release-world.ts";
import { Driver, isWaiting } from "./drive.ts";
import { decommissioning } from "./full-decommission.ts";
import {
  AFTER_A_FAILED_DEPLOY,
  expectReturned,
  GIVEN_MACHINES,
  reimaging,
  reimagingAgain,
  reinstalling,
  reinstallingAgain,
} from "./new-systems.ts";
import { powerCycling } from "./power-cycle.ts";

export interface Subject {
  readonly id: WorkflowId;
  readonly nodeId: NodeId;
  readonly hostname: string;
  /** The system id of the workflow's machine, unless the workflow itself creates the machine. */
  readonly systemId?: string;
}

export interface Outside {
  readonly commission: number;
  readonly deploy: number;
  readonly release: number;
  readonly abort: number;
  readonly powerOff: number;
}

/** One path through the stages of a workflow kind, with the stages that tests exercise on this path. */
export interface Scenario {
  readonly kind: string;
  readonly name: string;
  readonly stages: readonly string[];
  /** The requests that the simulated MAAS counts if nothing disturbs the scenario's workflow. */
  readonly outside: Outside;
  start(rig: OnboardingRig, n: number): Promise<Subject>;
  /** Simulates what the agent does between two runs of a stage. The argument `row` is the workflow's row, as it was read just before. */
  play(rig: OnboardingRig, id: WorkflowId, row: WorkflowRow): Promise<void>;
  expectEnd(rig: OnboardingRig, subject: Subject): Promise<void>;
  /** True if no other machine can replace the workflow's machine after somebody has deleted the machine from MAAS. */
  readonly cannotReplaceMachine?: true;
  /** True if only a cancel helps after somebody has released the machine, because the workflow works on the installed system. */
  readonly needsDeployedMachine?: true;
  /** True if the scenario's stages send requests only to the agent, and none to MAAS or the secret store. */
  readonly agentAlone?: true;
  readonly sameCode?: readonly string[];
  expectCancelled(rig: OnboardingRig, subject: Subject, end: WorkflowRow): Promise<void>;
}

export function systemIdOf(row: Pick<WorkflowRow, "id" | "state">): string | undefined {
  return (row.state as { maas_system_id?: string }).maas_system_id ?? GIVEN_MACHINES.get(row.id);
}

export function machineOf(rig: OnboardingRig, row: Pick<WorkflowRow, "id" | "state">): Machine | undefined {
  const systemId = systemIdOf(row);
  return systemId === undefined ? undefined : rig.maas.sim.region.findMachine(systemId);
}

export const countedOf = (rig: OnboardingRig, row: Pick<WorkflowRow, "id" | "state">): Outside => {
  const {
    commission = 0,
    deploy = 0,
    release = 0,
    abort = 0,
    power_off: powerOff = 0,
  } = rig.maas.sim.region.state.counters[systemIdOf(row) ?? ""] ?? {};
  return { commission, deploy, release, abort, powerOff };
};

async function expectActive(rig: OnboardingRig, { nodeId, hostname }: Subject): Promise<void> {
  const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status: "active" });
  expect(node?.host).toMatch(/^\d+\./);
  const { machines } = rig.maas.sim.region.state;
  expect(machines.filter((machine) => machine.hostname === hostname)).toHaveLength(1);
  expect(rig.secrets.entries.has(`kv/nodes/${nodeId}/user-data`), "the first boot's copy is removed").toBe(false);
}

/** Expects that the host has no valid token or certificate, and that a remaining node is quarantined or still enrolling. */
async function expectNoWayIn(rig: OnboardingRig, { nodeId }: Subject, end: WorkflowRow): Promise<void> {
  const { db } = rig.test.database;
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  const deployed = typeof (end.state as { deployed_at?: unknown }).deployed_at === "string";
  const { deploy, release, abort } = countedOf(rig, end);
  const machine = machineOf(rig, end);
  if (deployed) expect(machine?.status, "a deployed host is left alone").toBe(6);
  else {
    expect(deploy - release - abort, "deploys that were not taken back").toBe(0);
    expect(machine?.owner ?? null).toBeNull();
  }
  expect([undefined, deployed ? "quarantined" : "enrolling"]).toContain(node?.status);
  const certificates = await db.select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, nodeId));
  expect(certificates.filter((certificate) => certificate.revokedAt === null)).toEqual([]);
  const tokens = await db.select().from(enrollmentTokens).where(eq(enrollmentTokens.nodeId, nodeId));
  expect(tokens.filter((token) => token.revokedAt === null && token.usedAt === null)).toEqual([]);
  expect(rig.secrets.entries.has(`kv/nodes/${nodeId}/user-data`)).toBe(false);
}

/** Reads the stages of a workflow from the hub's registry, so that tests cover a new stage without further code. */
function stagesOf(kind: string, except: readonly string[] = []): readonly string[] {
  const known = workflowsOf({} as WorkflowServices).find((one) => one.kind === kind);
  if (known === undefined) throw new Error(`no workflow of kind ${kind} is registered`);
  return known.stageNames.filter((stage) => !except.includes(stage));
}

const onboarding: Scenario = {
  kind: ONBOARD,
  name: "an onboarding",
  stages: stagesOf(ONBOARD, AFTER_A_FAILED_DEPLOY),
  outside: { commission: 1, deploy: 1, release: 0, abort: 0, powerOff: 0 },
  start: (rig, n) => rig.start(n),
  // The agent of a host does nothing before MAAS has deployed the host's machine, so most runs of a stage need no query for the agent.
  play: async (rig, id, row) => {
    const machine = machineOf(rig, row);
    if (isWaiting(row) && (machine === undefined || machine.status === STATUS.deployed)) await rig.playAgent(id);
  },
  expectEnd: expectActive,
  expectCancelled: expectNoWayIn,
};

const withoutDatasource: Scenario = {
  ...onboarding,
  name: "an onboarding whose first deploy does not reach its datasource",
  stages: AFTER_A_FAILED_DEPLOY,
  outside: { commission: 1, deploy: 2, release: 1, abort: 0, powerOff: 1 },
  async play(rig, id, row) {
    const machine = machineOf(rig, row);
    const { plans } = rig.maas.sim.region.state;
    if (machine !== undefined) plans[machine.systemId] ??= { commission: [], deploy: ["datasource_failure"] };
    await onboarding.play(rig, id, row);
  },
};

const NOTHING: Outside = { commission: 0, deploy: 0, release: 0, abort: 0, powerOff: 0 };

async function expectNode(rig: OnboardingRig, { nodeId }: Subject, status: NodeStatus): Promise<void> {
  const { db } = rig.test.database;
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status, operationId: null });
  const [certificate] = await db.select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, nodeId));
  expect(certificate?.revokedAt !== null, "the certificate is revoked").toBe(status === "deleted");
}

/** After a cancelled onboarding, the tests check the onboarding's machine in MAAS. After a cancelled drain, the tests check the drain's node. */
const draining: Scenario = {
  kind: "drain",
  name: "a drain",
  agentAlone: true,
  stages: stagesOf("drain"),
  outside: NOTHING,
  start: (rig, n) => decommission(rig, "drain", `drained-${n}`),
  play: async (rig, id, row) => (isWaiting(row) ? playDecommissionedAgent(rig, id) : undefined),
  expectEnd: (rig, subject) => expectNode(rig, subject, "retired"),
  // A cancelled drain makes the node active, or offline if the node's agent is not connected.
  expectCancelled: async (rig, { nodeId }) => {
    const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
    expect(["active", "offline"]).toContain(node?.status);
    expect(node).toMatchObject({ operationId: null, cordonReason: null });
  },
};

const removing: Scenario = {
  ...draining,
  kind: "remove",
  name: "a remove",
  stages: stagesOf("remove"),
  start: (rig, n) => decommission(rig, "remove", `removed-${n}`),
  expectEnd: (rig, subject) => expectNode(rig, subject, "deleted"),
  expectCancelled: (rig, subject) => expectNode(rig, subject, "retired"),
};

const resetting: Scenario = {
  ...draining,
  kind: "soft_reset",
  name: "a soft reset",
  stages: stagesOf("soft_reset", powerCycling.stages),
  start: (rig, n) => clean(rig, "soft_reset", `reset-${n}`, "overwritten"),
  expectEnd: expectReturned,
  // A soft reset that is cancelled during its cleaning quarantines the node, because nobody knows whether the node is clean.
  expectCancelled: async (rig, { id, nodeId }) => {
    const { db } = rig.test.database;
    const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
    const begun = await hasTaskOf(db, { nodeId, workflowId: id }, CLEANING_TASKS);
    expect(begun ? ["quarantined"] : ["active", "offline"]).toContain(node?.status);
    expect(node).toMatchObject({ operationId: null, cordonReason: null });
  },
};

const cleaningStorage: Scenario = {
  ...resetting,
  kind: "storage_cleanup",
  name: "a storage cleanup",
  stages: stagesOf("storage_cleanup"),
  start: (rig, n) => clean(rig, "storage_cleanup", `storage-${n}`),
};

/** Expects that the host's agent has one valid certificate and one queued task, or neither if `gone` is true. */
async function expectHostGone(rig: OnboardingRig, nodeId: NodeId, gone: boolean): Promise<void> {
  const { db } = rig.test.database;
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status: "retired", operationId: null });
  const valid = await db
    .select()
    .from(nodeCertificates)
    .where(and(eq(nodeCertificates.nodeId, nodeId), isNull(nodeCertificates.revokedAt)));
  expect(valid, "certificates that are valid").toHaveLength(gone ? 0 : 1);
  const open = await db
    .select()
    .from(tasks)
    .where(and(eq(tasks.nodeId, nodeId), eq(tasks.state, "queued")));
  expect(open, "tasks that wait for the agent").toHaveLength(gone ? 0 : 1);
  if (node !== undefined) expect(await isHostReleased(db, node)).toBe(gone);
}

async function startReleaseOf(rig: OnboardingRig, n: number): Promise<Subject> {
  const host = await retiredHost(rig, n);
  await rig.test.database.inTx((tx) => openHost(tx, { nodeId: host.nodeId, reason: "left from before" }));
  return { ...(await startRelease(rig, host)), systemId: host.machine.systemId };
}

const releasing: Scenario = {
  kind: "release",
  name: "a release",
  stages: stagesOf("release", ["power_off_maas_node"]),
  outside: { commission: 1, deploy: 1, release: 1, abort: 0, powerOff: 1 },
  start: startReleaseOf,
  play: async () => undefined,
  cannotReplaceMachine: true,
  expectEnd: async (rig, { nodeId, systemId }) => {
    await expectHostGone(rig, nodeId, true);
    const machine = rig.maas.sim.region.machine(systemId ?? "");
    expect(machine).toMatchObject({ owner: null, powerState: "off" });
    expect(rig.maas.sim.region.hardwareOf(machine)?.power).toBe("off");
  },
  expectCancelled: async (rig, { nodeId, systemId }) => {
    const machine = rig.maas.sim.region.machine(systemId ?? "");
    await expectHostGone(rig, nodeId, machine.status !== 6);
  },
};

/** The workflows whose released machine the simulation has already switched on, as another person would. */
const SWITCHED_ON = new Set<WorkflowId>();
const withPowerOn: Scenario = {
  ...releasing,
  name: "a release of a machine that does not stay off",
  stages: ["power_off_maas_node"],
  outside: { ...releasing.outside, powerOff: 2 },
  async play(rig, id) {
    const machine = rig.maas.sim.region.findMachine(GIVEN_MACHINES.get(id) ?? "");
    const box = machine === undefined ? undefined : rig.maas.sim.region.hardwareOf(machine);
    if (machine?.status !== 4 || box === undefined || SWITCHED_ON.has(id)) return;
    SWITCHED_ON.add(id);
    box.power = "on";
  },
};

/** The scenarios of all workflow kinds. `every-stage.test.ts` fails for a workflow kind or a stage without a scenario. */
export const SCENARIOS: readonly Scenario[] = [
  onboarding,
  withoutDatasource,
  draining,
  removing,
  releasing,
  withPowerOn,
  resetting,
  powerCycling,
  cleaningStorage,
  reimaging,
  reimagingAgain,
  reinstalling,
  reinstallingAgain,
  decommissioning,
];

/** Each stage of every workflow kind, with the scenario that exercises the stage. */
export const STAGE_CASES = SCENARIOS.flatMap((scenario) => scenario.stages.map((stage) => ({ scenario, stage })));

/** The scenarios that send no request to MAAS or to the secret store, as `every-stage-changes.test.ts` proves. */
export const OF_THE_AGENT_ALONE = SCENARIOS.filter((scenario) => scenario.agentAlone === true);

/**
 * The scenarios with the stages at which the suites of MAAS faults try each fault. The suites of MAAS faults leave out stages whose code another
 * scenario already exercises (`sameCode`). `every-stage.test.ts` kills, cancels and repeats the stages of all workflow kinds.
 */
export const FAULT_SCENARIOS = SCENARIOS.filter((scenario) => !OF_THE_AGENT_ALONE.includes(scenario))
  .map((scenario) => ({
    scenario,
    name: scenario.name,
    stages: scenario.stages.filter((stage) => !scenario.sameCode?.includes(stage)),
  }))
  .filter(({ stages }) => stages.length > 0);
/**
 * Holds a database and a simulated region, and starts workflows of scenarios. The number of a started workflow counts the workflows of all scenarios.
 */
export interface Stagecraft {
  readonly rig: OnboardingRig;
  start(scenario: Scenario): Promise<{ subject: Subject; driver: Driver }>;
  close(): Promise<void>;
}

export const setStage = async (machines: number): Promise<Stagecraft> =>
  stageOn(await startOnboardingRig({ machines }));

function stageOn(rig: OnboardingRig): Stagecraft {
  const kinds = workflowsOf(rig.services);
  let started = 0;
  return {
    rig,
    async start(scenario) {
      started += 1;
      const subject = await scenario.start(rig, started);
      giveMachine(subject);
      return { subject, driver: new Driver(rig.test, kinds, (id, row) => scenario.play(rig, id, row)) };
    },
    close: () => rig.close(),
  };
}

/** Names the machine of a workflow whose machine existed in MAAS before the workflow. */
export function giveMachine({ id, systemId }: Pick<Subject, "id" | "systemId">): void {
  if (systemId !== undefined) GIVEN_MACHINES.set(id, systemId);
}
