/** The scenarios that give a host another system, for the tests that exercise every stage. */
import { expect } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { readAllocation } from "../../hub/db/queries/allocations.ts";
import { closedHosts } from "../../hub/db/queries/closed-hosts.ts";
import { hasLiveCertificate } from "../../hub/db/queries/node-certificates.ts";
import { isAccountLost } from "../../hub/db/queries/reinstalls.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { nodes, type Workflow as WorkflowRow } from "../../hub/db/schema/index.ts";
import { reinstallInstance } from "../../hub/power/reinstall-instance.ts";
import { DecommissionInput } from "../../hub/workflows/decommission/decommission-context.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { PROVISIONING_STAGES, STAGES_OF_MODE } from "../../shared/workflow-status.ts";
import { requireMemory, type StartedDecommission } from "../support/decommission-world.ts";
import type { OnboardingRig } from "../support/onboarding-rig.ts";
import { hostInService, playReimagedAgent, startReimage } from "../support/release-world.ts";
import { isWaiting } from "./drive.ts";
import { Tenancy } from "./tenancy.ts";

type Subject = StartedDecommission & { readonly systemId?: string };
/** The system ids of machines that existed in MAAS before their workflow, by the id of the workflow. */
export const GIVEN_MACHINES = new Map<WorkflowId, string>();
interface NewSystem {
  readonly kind: string;
  readonly name: string;
  readonly stages: readonly string[];
  readonly sameCode: readonly string[];
  readonly outside: Readonly<Record<"commission" | "deploy" | "release" | "abort" | "powerOff", number>>;
  readonly cannotReplaceMachine: true;
  start(rig: OnboardingRig, n: number): Promise<Subject>;
  play(rig: OnboardingRig, id: WorkflowId, row: WorkflowRow): Promise<void>;
  expectEnd(rig: OnboardingRig, subject: Subject): Promise<void>;
  expectCancelled(rig: OnboardingRig, subject: Subject): Promise<void>;
}
export const AFTER_A_FAILED_DEPLOY: readonly string[] = ["classify_deploy_failure", "recover_for_datasource_retry"];

export async function expectReturned(rig: OnboardingRig, { nodeId }: Pick<Subject, "nodeId">): Promise<void> {
  const { db } = rig.test.database;
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status: "active", operationId: null, cordonReason: null });
  expect(await closedHosts(db, [nodeId])).toEqual(new Set());
}

async function startReimageOf(rig: OnboardingRig, n: number, level: "overwritten" | null = null): Promise<Subject> {
  const host = await hostInService(rig, n, `reimaged-${n}`);
  if (level !== null) await requireMemory(rig, host.nodeId, host.hostname, { gpu_claim_level: level });
  return { ...(await startReimage(rig, host)), systemId: host.machine.systemId };
}

async function playReimaged(rig: OnboardingRig, id: WorkflowId, row: WorkflowRow): Promise<void> {
  const systemId = GIVEN_MACHINES.get(id);
  if (isWaiting(row) && systemId !== undefined) await playReimagedAgent(rig, id, systemId);
}

const AFTER_A_DEPLOY = STAGES_OF_MODE.reimage.slice(STAGES_OF_MODE.reimage.indexOf("wait_for_agent_enrollment") + 1);

export const reimaging: NewSystem = {
  kind: "reimage",
  name: "a reimage",
  stages: STAGES_OF_MODE.reimage.filter((stage) => !AFTER_A_FAILED_DEPLOY.includes(stage)),
  // After the deploy, no stage of a reimage sends a request to MAAS, because the reconciler judges the machine.
  sameCode: ["power_off_maas_node", ...PROVISIONING_STAGES, ...AFTER_A_DEPLOY],
  outside: { commission: 1, deploy: 2, release: 1, abort: 0, powerOff: 1 },
  start: (rig, n) => startReimageOf(rig, n, "overwritten"),
  play: playReimaged,
  cannotReplaceMachine: true,
  expectEnd: expectReturned,
  expectCancelled: async (rig, { nodeId, systemId }) => {
    const { db } = rig.test.database;
    const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
    // After a cancelled reimage, only a node with a deployed machine and a valid certificate may be active.
    const runs =
      rig.maas.sim.region.findMachine(systemId ?? "")?.status === 6 &&
      (await rig.test.database.inTx((tx) => hasLiveCertificate(tx, nodeId, node?.generation ?? -1)));
    expect(runs ? ["active", "offline", "quarantined"] : ["quarantined"]).toContain(node?.status);
    expect(node).toMatchObject({ operationId: null, cordonReason: null });
  },
};

export const reimagingAgain: NewSystem = {
  ...reimaging,
  name: "a reimage whose first deploy does not reach its datasource",
  stages: AFTER_A_FAILED_DEPLOY,
  outside: { commission: 1, deploy: 3, release: 2, abort: 0, powerOff: 2 },
  start: (rig, n) => startReimageOf(rig, n),
  async play(rig, id, row) {
    const { plans } = rig.maas.sim.region.state;
    const systemId = GIVEN_MACHINES.get(id);
    if (systemId !== undefined) plans[systemId] ??= { commission: [], deploy: ["datasource_failure"] };
    await playReimaged(rig, id, row);
  },
};

async function startReinstallOf(rig: OnboardingRig, n: number): Promise<Subject> {
  const { id, nodeId, host } = await Tenancy.begin(rig, n, true);
  const by = { name: "ann", tenant: null };
  const { created } = await rig.services.inTx((tx) => reinstallInstance(tx, id, { reason: "a new image", by }));
  const { systemId } = host.machine;
  return { id: created.decommission_id, nodeId, hostname: host.hostname, systemId };
}

async function instanceOf(rig: OnboardingRig, { id }: Pick<Subject, "id">) {
  const { db } = rig.test.database;
  const { allocation_id: instance } = DecommissionInput.parse((await readWorkflow(db, id))?.input);
  if (instance === null) throw new Error(`the reinstall ${id} names no instance`);
  const row = await readAllocation(db, instance);
  if (row === null) throw new Error(`the instance ${instance} is gone`);
  return { ...row, isLost: isAccountLost(row) };
}

export const reinstalling: NewSystem = {
  ...reimaging,
  kind: "reinstall",
  name: "a reinstall",
  stages: STAGES_OF_MODE.reinstall.filter((stage) => !AFTER_A_FAILED_DEPLOY.includes(stage)),
  // Only `restore_tenant` is new, and it sends no request to MAAS.
  sameCode: STAGES_OF_MODE.reinstall,
  start: startReinstallOf,
  expectEnd: async (rig, subject) => {
    await expectReturned(rig, subject);
    const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, subject.nodeId));
    expect(await instanceOf(rig, subject)).toMatchObject({
      status: "active",
      isLost: false,
      generation: node?.generation,
      decommissionId: null,
    });
  },
  expectCancelled: async (rig, subject) => {
    await reimaging.expectCancelled(rig, subject);
    const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, subject.nodeId));
    const instance = await instanceOf(rig, subject);
    expect(instance.status, "the tenant keeps the instance").toBe("active");
    if (instance.isLost) expect(node?.status, "a person is responsible").toBe("quarantined");
  },
};

export const reinstallingAgain: NewSystem = {
  ...reinstalling,
  name: "a reinstall whose first deploy does not reach its datasource",
  stages: AFTER_A_FAILED_DEPLOY,
  outside: reimagingAgain.outside,
  play: reimagingAgain.play,
};
