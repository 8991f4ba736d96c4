import { eq } from "drizzle-orm";
import { expect } from "vitest";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { enrollmentTokens, nodeCertificates, nodes, type Workflow as WorkflowRow } from "../../hub/db/schema/index.ts";
import type { OnboardServices } from "../../hub/workflows/context.ts";
import { ONBOARD } from "../../hub/workflows/onboard.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { decommission, playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { Driver } from "./drive.ts";

/** What a workflow is about, as the tests follow it. */
export interface Subject {
  readonly id: WorkflowId;
  readonly nodeId: NodeId;
  readonly hostname: string;
}

/** What MAAS counted of a machine. */
export interface Outside {
  readonly commission: number;
  readonly deploy: number;
  readonly release: number;
  readonly abort: number;
}

/** One way through a workflow kind, with the stages that have something to do on it and on none before. */
export interface Scenario {
  readonly kind: string;
  readonly name: string;
  readonly stages: readonly string[];
  /** What an undisturbed run makes MAAS count. */
  readonly outside: Outside;
  start(rig: OnboardingRig, n: number): Promise<Subject>;
  /** What the world outside would have done by now. */
  play(rig: OnboardingRig, id: WorkflowId): Promise<void>;
  expectEnd(rig: OnboardingRig, subject: Subject): Promise<void>;
  /** Beside what MAAS has of the machine. */
  expectCancelled?(rig: OnboardingRig, subject: Subject): Promise<void>;
}

/** The machine that the row holds, once it holds one. */
export function machineOf(rig: OnboardingRig, row: Pick<WorkflowRow, "state">): Machine | undefined {
  const { maas_system_id: systemId } = row.state as { maas_system_id?: string };
  return systemId === undefined ? undefined : rig.maas.sim.region.findMachine(systemId);
}

export const countedOf = (rig: OnboardingRig, row: Pick<WorkflowRow, "state">): Outside => {
  const { maas_system_id: systemId } = row.state as { maas_system_id?: string };
  const {
    commission = 0,
    deploy = 0,
    release = 0,
    abort = 0,
  } = rig.maas.sim.region.state.counters[systemId ?? ""] ?? {};
  return { commission, deploy, release, abort };
};

async function expectActive(rig: OnboardingRig, { nodeId, hostname }: Subject): Promise<void> {
  const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status: "active" });
  expect(node?.host).toMatch(/^\d+\./);
  const { machines } = rig.maas.sim.region.state;
  expect(machines.filter((machine) => machine.hostname === hostname)).toHaveLength(1);
  expect(rig.secrets.entries.has(`kv/nodes/${nodeId}/user-data`), "the first boot's copy is removed").toBe(false);
}

/** Nothing that the host carries lets its agent in any more, and a node that is left is not one that nobody owns. */
async function expectNoWayIn(rig: OnboardingRig, { id, nodeId }: Subject): Promise<void> {
  const { db } = rig.test.database;
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  const deployed = typeof (await readWorkflow(db, id).then((row) => row?.state as { deployed_at?: unknown }))
    .deployed_at;
  expect([undefined, deployed === "string" ? "quarantined" : "enrolling"]).toContain(node?.status);
  const certificates = await db.select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, nodeId));
  expect(certificates.filter((certificate) => certificate.revokedAt === null)).toEqual([]);
  const tokens = await db.select().from(enrollmentTokens).where(eq(enrollmentTokens.nodeId, nodeId));
  expect(tokens.filter((token) => token.revokedAt === null && token.usedAt === null)).toEqual([]);
  expect(rig.secrets.entries.has(`kv/nodes/${nodeId}/user-data`)).toBe(false);
}

/** From the registry, so that a new stage is a new case. */
function stagesOf(kind: string, except: readonly string[] = []): readonly string[] {
  const known = workflowsOf({} as OnboardServices).find((one) => one.kind === kind);
  if (known === undefined) throw new Error(`no workflow of kind ${kind} is registered`);
  return known.stageNames.filter((stage) => !except.includes(stage));
}

const AFTER_A_FAILED_DEPLOY = ["classify_deploy_failure", "recover_for_datasource_retry"];

const onboarding: Scenario = {
  kind: ONBOARD,
  name: "an onboarding",
  stages: stagesOf(ONBOARD, AFTER_A_FAILED_DEPLOY),
  outside: { commission: 1, deploy: 1, release: 0, abort: 0 },
  start: (rig, n) => rig.start(n),
  play: (rig, id) => rig.playAgent(id),
  expectEnd: expectActive,
  expectCancelled: expectNoWayIn,
};

const withoutDatasource: Scenario = {
  ...onboarding,
  name: "an onboarding whose first deploy does not reach its datasource",
  stages: AFTER_A_FAILED_DEPLOY,
  outside: { commission: 1, deploy: 2, release: 1, abort: 0 },
  async play(rig, id) {
    const row = await readWorkflow(rig.test.database.db, id);
    const machine = row === null ? undefined : machineOf(rig, row);
    const { plans } = rig.maas.sim.region.state;
    if (machine !== undefined) plans[machine.systemId] ??= { commission: [], deploy: ["datasource_failure"] };
    await rig.playAgent(id);
  },
};

const NOTHING: Outside = { commission: 0, deploy: 0, release: 0, abort: 0 };

async function expectNode(rig: OnboardingRig, { nodeId }: Subject, status: NodeStatus): Promise<void> {
  const { db } = rig.test.database;
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status, operationId: null });
  const [certificate] = await db.select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, nodeId));
  expect(certificate?.revokedAt !== null, "the certificate is revoked").toBe(status === "deleted");
}

/** What a cancel of the onboarding leaves is asserted by what MAAS has; here it is the node. */
const draining: Scenario = {
  kind: "drain",
  name: "a drain",
  stages: stagesOf("drain"),
  outside: NOTHING,
  start: (rig, n) => decommission(rig, "drain", `drained-${n}`),
  play: playDecommissionedAgent,
  expectEnd: (rig, subject) => expectNode(rig, subject, "retired"),
  // Active again once its agent is heard of; one that was never draining is so still.
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

/** Each workflow kind has its ways here: a kind or a stage without one fails `every-stage.test.ts`. */
export const SCENARIOS: readonly Scenario[] = [onboarding, withoutDatasource, draining, removing];

/** Every stage of every kind with the scenario that exercises it. */
export const STAGE_CASES = SCENARIOS.flatMap((scenario) => scenario.stages.map((stage) => ({ scenario, stage })));

/** A database, a simulated region and a driver for each scenario; subjects are numbered across all of them. */
export interface Stagecraft {
  readonly rig: OnboardingRig;
  start(scenario: Scenario): Promise<{ subject: Subject; driver: Driver }>;
  close(): Promise<void>;
}

export async function setStage(machines: number): Promise<Stagecraft> {
  const rig = await startOnboardingRig({ machines });
  const kinds = workflowsOf(rig.services);
  let started = 0;
  return {
    rig,
    async start(scenario) {
      started += 1;
      const subject = await scenario.start(rig, started);
      return { subject, driver: new Driver(rig.test, kinds, (id) => scenario.play(rig, id)) };
    },
    close: () => rig.close(),
  };
}
