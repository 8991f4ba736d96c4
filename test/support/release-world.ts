import { randomUUID } from "node:crypto";
import { eq } from "../../hub/db/orm.ts";
import { nodeDecommissions, nodes, type Task } from "../../hub/db/schema/index.ts";
import { enterDraining, retire } from "../../hub/node/lifecycle.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import type { DecommissionCreate } from "../../shared/api/decommissions.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import type { Hardware, Machine } from "../fakes/maas/state/model.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { playDecommissionedAgent, type StartedDecommission } from "./decommission-world.ts";
import { nodeInService, recordOnboarding } from "./node-in-service.ts";
import { type OnboardingRig, playAgentOn } from "./onboarding-rig.ts";
import { certify, hasUsedCertificate } from "./signing-agent.ts";

export interface DeployedHost {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly machine: Machine;
  readonly box: Hardware;
}

async function deployedMachine(rig: OnboardingRig, n: number, hostname: string): Promise<Machine> {
  const maas = await rig.services.maas(rig.siteId);
  const { region } = rig.maas.sim;
  const power = { address: bmcAddress(n), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
  const { systemId } = await maas.createMachine({ hostname, architecture: "amd64/generic", power });
  await maas.commission(systemId);
  region.settle(region.machine(systemId));
  await maas.deploy(systemId, {
    userDataBase64: new Secret(""),
    distroSeries: "noble",
    enableHwSync: false,
    comment: "",
  });
  region.settle(region.machine(systemId));
  return region.machine(systemId);
}

export async function hostInService(
  rig: OnboardingRig,
  n: number,
  hostname: string,
  profileId = rig.profileId,
): Promise<DeployedHost> {
  const machine = await deployedMachine(rig, n, hostname);
  const box = rig.maas.sim.region.hardwareOf(machine);
  if (box === undefined) throw new Error(`no box ${n}`);
  const nodeId = await nodeInService(rig, hostname);
  const host = { nodeId, hostname, ipmiIp: box.bmcAddress, maasSystemId: machine.systemId };
  await recordOnboarding(rig, host, profileId);
  return { nodeId, hostname, machine, box };
}

export async function retiredHost(rig: OnboardingRig, n: number, profileId = rig.profileId): Promise<DeployedHost> {
  const host = await hostInService(rig, n, `retired-${n}`, profileId);
  const { nodeId } = host;
  await rig.test.database.inTx(async (tx) => {
    await enterDraining(tx, nodeId, randomUUID(), "drained before");
    await retire(tx, nodeId, "drained before");
  });
  return host;
}

export async function startRelease(rig: OnboardingRig, host: DeployedHost): Promise<StartedDecommission> {
  const request = { mode: "release", reason: "no longer needed" } as const;
  const created = await rig.test.database.inTx((tx) => startDecommission(tx, host.nodeId, request, "reconciler"));
  return { id: created.decommission_id, nodeId: host.nodeId, hostname: host.hostname };
}

/** The fields of a request for a full decommission that a test may change. */
export type FullOptions = Partial<Extract<DecommissionCreate, { readonly mode: "full_decommission" }>>;

/** By default, a full decommission deletes the node's machine in MAAS. */
export async function startFull(
  rig: OnboardingRig,
  host: Pick<DeployedHost, "nodeId" | "hostname">,
  more: FullOptions = {},
): Promise<StartedDecommission> {
  const request = {
    mode: "full_decommission",
    reason: "hardware returned",
    erase: "quick",
    storage_cleanup: "all",
    remove_maas_record: true,
    agent_wait_seconds: 900,
    ...more,
  } as const;
  const created = await rig.test.database.inTx((tx) => startDecommission(tx, host.nodeId, request, "ann"));
  return { id: created.decommission_id, nodeId: host.nodeId, hostname: host.hostname };
}

/** The fields of a request for a reimage that a test may change. */
export type ReimageOptions = Partial<Extract<DecommissionCreate, { readonly mode: "reimage" }>>;

export async function startReimage(
  rig: OnboardingRig,
  host: Pick<DeployedHost, "nodeId" | "hostname">,
  more: ReimageOptions = {},
): Promise<StartedDecommission> {
  const request = { mode: "reimage", reason: "next tenant", erase: "none", agent_wait_seconds: 900, ...more } as const;
  const created = await rig.test.database.inTx((tx) => startDecommission(tx, host.nodeId, request, "ann"));
  return { id: created.decommission_id, nodeId: host.nodeId, hostname: host.hostname };
}

/** Simulates what the agent of a deployed host does without an order, and gives the agent a certificate that it has used. */
async function playInstalledAgent(rig: OnboardingRig, id: WorkflowId, systemId: string): Promise<void> {
  const { db, inTx } = rig.test.database;
  const [host] = await db
    .select({ nodeId: nodes.id, generation: nodes.generation })
    .from(nodeDecommissions)
    .innerJoin(nodes, eq(nodes.id, nodeDecommissions.nodeId))
    .where(eq(nodeDecommissions.decommissionId, id));
  if (host === undefined) return;
  await playAgentOn(rig.test, rig.maas, { ...host, systemId });
  if (await hasUsedCertificate(db, host.nodeId, host.generation)) return;
  await inTx((tx) => certify(tx, host.nodeId));
}

/** Simulates the agent of a reimaged host: the old system's agent before the release, and the new system's agent after the deploy. */
export async function playReimagedAgent(
  rig: OnboardingRig,
  id: WorkflowId,
  systemId: string,
  resultOf?: (task: Task) => unknown,
): Promise<void> {
  if (rig.maas.sim.region.findMachine(systemId)?.status === STATUS.deployed)
    await playInstalledAgent(rig, id, systemId);
  await playDecommissionedAgent(rig, id, resultOf);
}
