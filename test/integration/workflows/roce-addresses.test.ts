import { afterAll, beforeAll, expect, it } from "vitest";
import { and, eq } from "../../../hub/db/orm.ts";
import { listNodeRows } from "../../../hub/db/queries/node-reads.ts";
import { readNode } from "../../../hub/db/queries/nodes.ts";
import { maasRoceAssignments } from "../../../hub/db/schema/index.ts";
import { judgeInventory } from "../../../hub/node/hardware-check.ts";
import { schedulability } from "../../../hub/node/schedulable.ts";
import { schedulingFactsOf } from "../../../hub/node/scheduling-facts.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import type { NodeId, ProfileId } from "../../../shared/ids.ts";
import { ROCE_NICS } from "../../fakes/maas/state/site.ts";
import { Driver } from "../../properties/drive.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { inventoryOf } from "../../support/running-host.ts";

let rig: OnboardingRig;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 3 });
});
afterAll(() => rig.close());

const [first, second] = ROCE_NICS;

async function onboarded(n: number, profileId?: ProfileId): Promise<NodeId> {
  const { id, nodeId } = await rig.start(n, profileId);
  const driver = new Driver(rig.test, workflowsOf(rig.services), (one) => rig.playAgent(one));
  expect(await driver.drive(id), await driver.story(id)).toMatchObject({ status: "completed" });
  return nodeId;
}

/** The agent of the node's host sends an inventory with these addresses. */
async function report(nodeId: NodeId, addresses: Readonly<Record<string, string>>): Promise<void> {
  const node = await readNode(rig.services.db, nodeId);
  if (node === null) throw new Error("there is no node");
  const inventory = inventoryOf({ bootId: "boot", uuid: "", macs: [] });
  const interfaces = Object.entries({ eno1: "10.0.0.5", ...addresses }).map(([name, address]) => ({
    ...{ name, mac: "", speed_mbps: null },
    ipv4: address === "" ? [] : [address],
  }));
  await rig.services.inTx((tx) => judgeInventory(tx, node, { ...inventory, interfaces }));
}

async function shown(nodeId: NodeId): Promise<[said: string | undefined, barredBy: string[]]> {
  const [row] = await listNodeRows(rig.services.db, { id: nodeId }, { limit: 1, after: null });
  if (row === undefined) throw new Error("there is no node");
  const said = row.conditions.find(({ type }) => type === "network.addresses");
  const { reasons } = schedulability(schedulingFactsOf(row, false), row.conditions);
  return [said && `${said.status} ${said.reason}`, reasons.filter((one) => one.startsWith("network."))];
}

const addressesOf = (n: number) => ({ [first]: `172.30.0.${2 * n + 1}`, [second]: `172.31.0.${2 * n + 1}` });

it("a host in service that loses a RoCE address gets no new tenant until it has the address again", async () => {
  const nodeId = await onboarded(1);
  expect(await shown(nodeId), "the simulated host shows no addresses").toEqual([undefined, []]);
  await report(nodeId, addressesOf(1));
  expect(await shown(nodeId)).toEqual(["True AllOnHost", []]);
  await report(nodeId, { ...addressesOf(1), [second]: "" });
  expect(await shown(nodeId)).toEqual([
    "False AddressesMissing",
    [expect.stringContaining("network.addresses is False: AddressesMissing")],
  ]);
  await report(nodeId, addressesOf(1));
  expect(await shown(nodeId)).toEqual(["True AllOnHost", []]);
});

it("a row that MAAS did not take is no address that the host must have", async () => {
  const profileId = await rig.addProfile("with-a-refused-row", { roce_required: false });
  const row = { interface: "ens99f9", ipv4Cidr: "172.31.9.9/31" };
  const hostname = "host-3";
  await rig.services.db.insert(maasRoceAssignments).values({ siteId: rig.siteId, hostname, ...row });
  const nodeId = await onboarded(3, profileId);
  await report(nodeId, addressesOf(3));
  expect(await shown(nodeId)).toEqual(["True AllOnHost", []]);
});

it("rows that somebody changes after the deploy do not count, and a profile may allow a host to lack addresses", async () => {
  const profileId = await rig.addProfile("without-roce", { roce_required: false });
  const nodeId = await onboarded(2, profileId);
  const row = and(eq(maasRoceAssignments.hostname, (await readNode(rig.services.db, nodeId))?.hostname ?? ""));
  await rig.services.db.delete(maasRoceAssignments).where(row);
  await report(nodeId, addressesOf(2));
  expect(await shown(nodeId)).toEqual(["True AllOnHost", []]);
  await report(nodeId, {});
  expect(await shown(nodeId)).toEqual(["False MissingButAllowed", []]);
});
