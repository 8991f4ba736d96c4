/** The provisioning stages work without an onboarding: a workflow of another kind runs all these stages. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { eq } from "../../hub/db/orm.ts";
import {
  maasSiteProfiles,
  maasSites,
  nodeMaasState,
  nodeOnboardings,
  nodes,
  skus,
  workflows,
} from "../../hub/db/schema/index.ts";
import { removeHealthOverride, setHealthOverride } from "../../hub/node/health-override.ts";
import type { StageRun } from "../../hub/workflows/engine/stage.ts";
import { defineWorkflow, type Workflow } from "../../hub/workflows/engine/workflow.ts";
import type { ProvisionContext } from "../../hub/workflows/provisioning/context.ts";
import { ProvisionState } from "../../hub/workflows/provisioning/provision-state.ts";
import { PROVISION_RESTART, PROVISION_STAGES } from "../../hub/workflows/provisioning/provisioning.ts";
import { stepBackToReady } from "../../hub/workflows/provisioning/release.ts";
import { RESTORED } from "../../shared/health-report.ts";
import { NodeId, WorkflowId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { PROVISIONING_STAGES, type ProvisioningStage } from "../../shared/workflow-status.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { type OnboardingRig, playAgentOn, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { Driver } from "./drive.ts";

const HostInput = z.object({ node_id: NodeId, hostname: z.string(), ipmi_ip: z.string() });
type HostInput = z.output<typeof HostInput>;

let rig: OnboardingRig;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 4 });
});
afterAll(() => rig.close());

async function contextOf(run: StageRun<HostInput, ProvisionState>): Promise<ProvisionContext<HostInput>> {
  const { db } = rig.services;
  const [site] = await db.select().from(maasSites).where(eq(maasSites.id, rig.siteId));
  const [profile] = await db.select().from(maasSiteProfiles).where(eq(maasSiteProfiles.id, rig.profileId));
  const [sku] = await db.select().from(skus).where(eq(skus.id, SKU));
  if (site === undefined || profile === undefined || sku === undefined) throw new Error("the rig has no site");
  const { node_id: nodeId, hostname, ipmi_ip: ipmiIp } = run.input;
  const host = { nodeId, hostname, ipmiIp };
  return { ...run, services: rig.services, operation: "onboarding", host, site, profile, sku };
}

const restart: Readonly<Record<"retry" | "resume", Readonly<Partial<Record<string, ProvisioningStage>>>>> =
  PROVISION_RESTART;

const provision = (): Workflow =>
  defineWorkflow<ProvisionContext<HostInput>, HostInput, ProvisionState>({
    kind: "provision",
    stages: PROVISION_STAGES,
    input: HostInput,
    state: ProvisionState.partial(),
    renamed: {},
    buildContext: contextOf,
    hooks: {},
    restartPoint: (verb, stage) => restart[verb][stage] ?? stage,
  });

async function readyMachine(n: number, hostname: string): Promise<string> {
  const maas = await rig.services.maas(rig.siteId);
  const { region } = rig.maas.sim;
  const power = { address: bmcAddress(n), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
  const { systemId } = await maas.createMachine({ hostname, architecture: "amd64/generic", power });
  await maas.commission(systemId);
  region.settle(region.machine(systemId));
  return systemId;
}

async function begin(
  n: number,
  agent: "comes" | "stays away" = "comes",
): Promise<{ id: WorkflowId; nodeId: NodeId; systemId: string; driver: Driver }> {
  const hostname = `alone-${n}`;
  const [id, nodeId] = [WorkflowId.parse(randomUUID()), NodeId.parse(randomUUID())];
  const systemId = await readyMachine(n, hostname);
  const { username } = await (await rig.services.maas(rig.siteId)).whoami();
  await rig.services.db.insert(workflows).values({
    id,
    kind: "provision",
    siteId: rig.siteId,
    stage: PROVISIONING_STAGES[0],
    input: { node_id: nodeId, hostname, ipmi_ip: bmcAddress(n) },
    state: { maas_system_id: systemId, maas_username: username },
    status: "pending",
    requestedBy: "ann",
  });
  const play = async (): Promise<void> => {
    const [node] = await rig.services.db.select().from(nodes).where(eq(nodes.id, nodeId));
    if (node !== undefined && agent === "comes")
      await playAgentOn(rig.test, rig.maas, { nodeId, generation: node.generation, systemId });
  };
  return { id, nodeId, systemId, driver: new Driver(rig.test, [provision()], play) };
}

describe("a workflow without an onboarding", () => {
  it("runs every provisioning stage, from a Ready machine to a healthy agent", async () => {
    const { id, nodeId, systemId, driver } = await begin(1);
    const end = await driver.drive(id);
    expect(end.status, await driver.story(id)).toBe("completed");
    const { db } = rig.services;
    const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
    // Only the last stage of an onboarding makes the node active.
    expect(node).toMatchObject({ status: "enrolling", hostname: "alone-1", generation: 1 });
    const [bound] = await db.select().from(nodeMaasState).where(eq(nodeMaasState.nodeId, nodeId));
    expect(bound).toMatchObject({ maasSystemId: systemId, ipmiIp: bmcAddress(1) });
    expect(await db.select().from(nodeOnboardings)).toEqual([]);
    const left = (await driver.story(id)).split("\n").filter((line) => / (succeeded|skipped): /.test(line));
    expect(left.map((line) => line.split(" ")[0])).toEqual([...PROVISIONING_STAGES]);
  });

  it("deploys once more after a datasource failure, from the rendering", async () => {
    const { id, systemId, driver } = await begin(2);
    rig.maas.sim.region.state.plans[systemId] = { commission: [], deploy: ["datasource_failure"] };
    const end = await driver.drive(id);
    expect(end.status, await driver.story(id)).toBe("completed");
    expect(rig.maas.sim.region.state.counters[systemId]).toMatchObject({ deploy: 2, release: 1 });
    expect(end.state).toMatchObject({ datasource_retries: 1, generation: 2 });
  });

  it("gives the machine back when it is cancelled, and deletes the node that never enrolled", async () => {
    const { id, nodeId, systemId, driver } = await begin(3, "stays away");
    await driver.drive(id, (row) => {
      if (row.stage !== "wait_for_deployed") return async (look) => void (await (await look.run()).commit());
      return null;
    });
    await driver.verb(id, "cancel");
    const end = await driver.drive(id);
    expect(end.status, await driver.story(id)).toBe("cancelled");
    expect(rig.maas.sim.region.machine(systemId)).toMatchObject({ status: 4, owner: null });
    expect(await rig.services.db.select().from(nodes).where(eq(nodes.id, nodeId))).toEqual([]);
  });

  it("releases a Deployed machine after a restore only when a person has looked at its host", async () => {
    const { id, nodeId, systemId, driver } = await begin(4);
    const { state } = await driver.drive(id);
    const now = new Date();
    const context = await contextOf({
      workflowId: id,
      fence: 0,
      stage: "deploy_via_maas",
      attempt: 1,
      reentered: true,
      enteredAt: now,
      deadline: now,
      now,
      input: { node_id: nodeId, hostname: "alone-4", ipmi_ip: bmcAddress(4) },
      state: ProvisionState.partial().parse(state),
      signal: new AbortController().signal,
    });
    const step = () => stepBackToReady("compensation", context, "test");
    const releases = () => rig.maas.sim.region.state.counters[systemId]?.release ?? 0;
    const held = { nodeId, target: null, reason: "test", setBy: "test" };
    await rig.services.inTx((tx) => setHealthOverride(tx, { ...held, source: RESTORED }));
    await expect(step()).rejects.toThrow("does not know who uses it");
    expect(releases()).toBe(0);
    await rig.services.inTx((tx) => removeHealthOverride(tx, nodeId, RESTORED, { by: "ann", reason: "nobody does" }));
    await rig.services.inTx((tx) => setHealthOverride(tx, { ...held, source: "other" }));
    expect(await step()).toMatchObject({ kind: "wait" });
    expect(releases()).toBe(1);
  });
});
