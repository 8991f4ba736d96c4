import { randomUUID } from "node:crypto";
import { enterDraining, retire } from "../../hub/node/lifecycle.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import type { NodeId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import type { Hardware, Machine } from "../fakes/maas/state/model.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import type { StartedDecommission } from "./decommission-world.ts";
import { nodeInService, recordOnboarding } from "./node-in-service.ts";
import type { OnboardingRig } from "./onboarding-rig.ts";

export interface RetiredHost {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly machine: Machine;
  readonly box: Hardware;
}

/** Commissions and deploys the n-th box as the site's MAAS user. */
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

/** A node whose host is the n-th box, as an onboarding, a time in service and a drain leave it. */
export async function retiredHost(rig: OnboardingRig, n: number, profileId = rig.profileId): Promise<RetiredHost> {
  const hostname = `retired-${n}`;
  const machine = await deployedMachine(rig, n, hostname);
  const box = rig.maas.sim.region.hardwareOf(machine);
  if (box === undefined) throw new Error(`no box ${n}`);
  const nodeId = await nodeInService(rig, hostname);
  const host = { nodeId, hostname, ipmiIp: box.bmcAddress, maasSystemId: machine.systemId };
  await recordOnboarding(rig, host, profileId);
  await rig.test.database.inTx(async (tx) => {
    await enterDraining(tx, nodeId, randomUUID(), "drained before");
    await retire(tx, nodeId, "drained before");
  });
  return { nodeId, hostname, machine, box };
}

/** Starts a release of the machine of a node that was drained before. */
export async function startRelease(rig: OnboardingRig, host: RetiredHost): Promise<StartedDecommission> {
  const request = { mode: "release", reason: "no longer needed" } as const;
  const created = await rig.test.database.inTx((tx) => startDecommission(tx, host.nodeId, request, "reconciler"));
  return { id: created.decommission_id, nodeId: host.nodeId, hostname: host.hostname };
}
