import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAllocation } from "../../hub/allocations/create-allocation.ts";
import { and, eq } from "../../hub/db/orm.ts";
import { readAllocation } from "../../hub/db/queries/allocations.ts";
import { readDecommission } from "../../hub/db/queries/decommissions.ts";
import { listHealthOverrides } from "../../hub/db/queries/node-health-overrides.ts";
import { insertPowerOverride } from "../../hub/db/queries/power-overrides.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import {
  allocations,
  domainEvents,
  maasPowerCredentialOverrides,
  nodes,
  sanitizationRecords,
  tasks,
} from "../../hub/db/schema/index.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { startOnboarding } from "../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { AllocationCreate } from "../../shared/api/allocations.ts";
import type { AllocationId, NodeId, WorkflowId } from "../../shared/ids.ts";
import { SanitizationRecord } from "../../shared/sanitization-record.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { makeSchedulable, SSH_KEY } from "../support/allocatable-node.ts";
import { playDecommissionedAgent } from "../support/decommission-world.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { type DeployedHost, hostInService, startFull } from "../support/release-world.ts";
import { certify } from "../support/signing-agent.ts";
import { Driver, plainly } from "./drive.ts";

/** Tests how a full decommission treats tenants, secrets and machines, and where it stops for a person (architecture 14.8). */
let rig: OnboardingRig;
let driver: Driver;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 28 });
  driver = new Driver(rig.test, workflowsOf(rig.services), (id) => playDecommissionedAgent(rig, id));
});
afterAll(() => rig?.close());

const db = () => rig.services.db;
const inTx: OnboardingRig["services"]["inTx"] = (fn) => rig.services.inTx(fn);
const nodeOf = async (id: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, id)))[0];
const anotherHost = (): Promise<DeployedHost> => {
  boxes += 1;
  return hostInService(rig, boxes, `last-${boxes}`);
};
const machineOf = ({ machine }: DeployedHost) => rig.maas.sim.region.findMachine(machine.systemId);
const drive = async (id: WorkflowId) => {
  const end = await driver.drive(id);
  return { status: end.status, stage: end.stage, code: end.failureCode };
};
const DONE = { status: "completed", stage: "remove_maas_record", code: null };
const until = (id: WorkflowId, stage: string) => driver.drive(id, (row) => (row.stage === stage ? null : plainly));
const force = (workflowId: WorkflowId) =>
  inTx((tx) => applyForce(tx, driver.kinds, { workflowId, actor: "ann", role: "admin", reason: "it burnt down" }));
/** Releases the machine as another MAAS user would. With `comment`, the other MAAS user first erases the machine's disks. */
function releaseByOther({ machine }: DeployedHost, comment?: string): void {
  const { region } = rig.maas.sim;
  if (comment !== undefined) {
    region.event(machine, "DEBUG", "User erasing disk", `(bob) - ${comment}`);
    region.event(machine, "INFO", "Disks erased");
  }
  region.setOwner(machine, null);
  region.forceStatus(machine, STATUS.ready);
}

const allocate = async (nodeId: NodeId): Promise<AllocationId> => {
  await inTx(async (tx) => {
    await makeSchedulable(tx, nodeId);
    await certify(tx, nodeId);
  });
  const request = { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
  const { id } = await inTx((tx) => createAllocation(tx, AllocationCreate.parse(request), "ann"));
  await db().update(allocations).set({ status: "active" }).where(eq(allocations.id, id));
  return id;
};
const recordsOf = async (nodeId: NodeId): Promise<SanitizationRecord[]> => {
  const rows = await db().select().from(sanitizationRecords).where(eq(sanitizationRecords.nodeId, nodeId));
  return rows.map(({ text }) => SanitizationRecord.parse(JSON.parse(text)));
};

describe("the tenant of a node", () => {
  it("keeps the node unless the request takes it; then the account goes, and the allocation ends with the node", async () => {
    const host = await anotherHost();
    const id = await allocate(host.nodeId);
    await expect(startFull(rig, host)).rejects.toMatchObject({ code: "allocation_exists" });
    const started = await startFull(rig, host, { force_release_allocation: true });
    expect((await readAllocation(db(), id))?.status).toBe("active");
    await until(started.id, "drain_node");
    expect(await readAllocation(db(), id)).toMatchObject({
      status: "ending",
      endForced: true,
      endReason: "hardware returned",
      decommissionId: started.id,
    });
    const told = await db()
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `allocations/${id}`));
    expect(told.find(({ type }) => type === "node.allocation.ending")?.data).toMatchObject({
      decommission_id: started.id,
    });
    expect(await drive(started.id), await driver.story(started.id)).toEqual(DONE);
    expect((await readAllocation(db(), id))?.status).toBe("ended");
    const revoked = and(eq(tasks.nodeId, host.nodeId), eq(tasks.type, "allocation.revoke_user"));
    expect(await db().select().from(tasks).where(revoked)).toMatchObject([{ input: { login_user: "alice" } }]);
    const [record, ...others] = await recordsOf(host.nodeId);
    expect(others).toEqual([]);
    const judged = { verdict: "incomplete", reasons: [{ code: "residue_missing" }], trust: "in_place" };
    expect(record).toMatchObject({ ...judged, allocation: { id }, signed_by_agent: true });
    expect(record?.not_covered.join("\n")).toContain("written before MAAS released the machine");
  });

  it("is cleared by a turnover if the decommission is cancelled", async () => {
    const host = await anotherHost();
    const id = await allocate(host.nodeId);
    const started = await startFull(rig, host, { force_release_allocation: true });
    await until(started.id, "cleanup_storage");
    await driver.verb(started.id, "cancel");
    expect((await drive(started.id)).status).toBe("cancelled");
    expect(await readAllocation(db(), id)).toMatchObject({ status: "ending", decommissionId: null });
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "quarantined", quarantinedBy: "cleanup" });
  });
});

describe("the erase", () => {
  it("counts as done only with evidence; a person may decide to go on without", async () => {
    const host = await anotherHost();
    const { id } = await startFull(rig, host);
    await until(id, "release_maas_node");
    releaseByOther(host, "a quick one");
    expect(await drive(id)).toMatchObject({ stage: "release_maas_node", code: "erase_unproven" });
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "retired" });
    const { region } = rig.maas.sim;
    region.event(host.machine, "DEBUG", "User releasing node", `(bob) - muster decommission ${id}`);
    region.event(host.machine, "INFO", "Release scripts executed successfully.");
    await driver.verb(id, "resume");
    expect(await drive(id)).toMatchObject({ code: "erase_unproven" });
    const row = await readWorkflow(db(), id);
    expect(row?.evidence, "scripts without words about disks prove nothing").toMatchObject({ lack: "no_words" });
    for (const said of ["enable_disk_erasing_on_release", "If the machine is New", "health override disk-erase"])
      expect(row?.failureMessage).toContain(said);
    await force(id);
    expect(await drive(id), await driver.story(id)).toEqual(DONE);
    const end = await readWorkflow(db(), id);
    expect(end?.failureMessage).toContain("erase of the disks (quick) ended well, and ann decided to continue");
    expect(end?.nextAction).toContain("Erase the disks before the host is passed on.");
  });

  it("by somebody else counts with the comment that the failure names", async () => {
    const host = await anotherHost();
    const { id } = await startFull(rig, host, { remove_maas_record: false });
    await until(id, "release_maas_node");
    releaseByOther(host);
    expect(await drive(id)).toMatchObject({ code: "erase_unproven" });
    const comment = (await readWorkflow(db(), id))?.failureMessage?.match(/comment "([^"]+)"/)?.[1] ?? "none";
    releaseByOther(host, comment);
    await driver.verb(id, "resume");
    expect(await drive(id), await driver.story(id)).toEqual(DONE);
    expect((await readWorkflow(db(), id))?.failureMessage, "the end names no erase").toBeNull();
    expect(machineOf(host), "the request leaves the machine in MAAS").toMatchObject({ status: STATUS.ready });
  });

  it("counts by the words of MAAS's release script about each disk, if MAAS stored them", async () => {
    const { config } = rig.maas.sim.region.state;
    config["enable_disk_erasing_on_release"] = true;
    const [good, refusing] = [await anotherHost(), await anotherHost()];
    refusing.box.refusesSecureErase = true;
    const { id } = await startFull(rig, good, { erase: "secure" });
    expect(await drive(id), await driver.story(id)).toEqual(DONE);
    expect(await driver.story(id)).toMatch(/release_maas_node succeeded: .*nvme0n1 \(\S+\) secure/);
    const fallback = await startFull(rig, refusing, { erase: "secure" });
    expect(await drive(fallback.id), await driver.story(fallback.id)).toMatchObject({ code: "erase_fell_back" });
    config["enable_disk_erasing_on_release"] = false;
    const row = await readWorkflow(db(), fallback.id);
    expect(row?.failureMessage).toContain("write_zeroes");
    await force(fallback.id);
    expect(await drive(fallback.id), await driver.story(fallback.id)).toEqual(DONE);
    expect(await listHealthOverrides(db(), [refusing.nodeId])).toMatchObject([
      { reason: expect.stringContaining("weaker method") },
    ]);
  });

  it("that only began counts for nothing, although the hub saw the status Disk erasing", async () => {
    const host = await anotherHost();
    const { id } = await startFull(rig, host);
    const { region } = rig.maas.sim;
    const { erase } = region.timings;
    Object.assign(region.timings, { erase: 1e9 });
    await driver.drive(id, () => (host.machine.status === STATUS.disk_erasing ? null : plainly));
    Object.assign(region.timings, { erase });
    await driver.step(id);
    region.cancelJobs(host.machine);
    region.event(host.machine, "ERROR", "Marking node failed", "Failed to erase disks.");
    releaseByOther(host);
    expect(await drive(id), await driver.story(id)).toMatchObject({ code: "erase_unproven" });
    // The release that ends an erase is evidence only in MAAS versions without an event for the erase's end.
    region.event(host.machine, "DEBUG", "User erasing disk", `(bob) - muster decommission ${id}`);
    region.event(host.machine, "DEBUG", "User releasing node", "");
    await driver.verb(id, "resume");
    expect(await drive(id), await driver.story(id)).toMatchObject({ code: "erase_unproven" });
    const body = JSON.stringify({ version: "3.5.2", subversion: "", capabilities: [] });
    rig.maas.sim.faults.add({ match: { path: "version/" }, kind: "status", code: 200, body, times: 1e6 });
    await driver.verb(id, "resume");
    expect(await drive(id), await driver.story(id)).toEqual(DONE);
    rig.maas.sim.faults.clear();
    expect(await driver.story(id)).toContain("MAAS 3.5.2 shows the end of an erase only by the release");
  });
});

it("goes on by force without an agent that is gone for good", async () => {
  const host = await anotherHost();
  await allocate(host.nodeId);
  await setConnected(rig, host.nodeId, false);
  const { id } = await startFull(rig, host, { agent_wait_seconds: 0, force_release_allocation: true });
  expect(await drive(id)).toMatchObject({ stage: "drain_node", code: "agent_unreachable" });
  await force(id);
  expect(await drive(id), await driver.story(id)).toEqual(DONE);
  expect(await driver.story(id)).toContain("cleanup_storage skipped: Continued without the agent, as ann decided");
  const unsigned = { signed_by_agent: false, claims: [], unsigned_reason: expect.stringContaining("ann decided") };
  expect(await recordsOf(host.nodeId)).toMatchObject([unsigned]);
});

it("does not release a machine that an earlier operation released and somebody has deployed again", async () => {
  const host = await anotherHost();
  const first = await startFull(rig, host, { remove_maas_record: false });
  await until(first.id, "remove_gpuaas_node_record");
  await driver.verb(first.id, "cancel");
  expect((await drive(first.id)).status).toBe("cancelled");
  const machine = machineOf(host);
  if (machine === undefined) throw new Error("the machine is gone");
  rig.maas.sim.region.setOwner(machine, machine.owner ?? rig.maas.sim.region.state.users[0]?.username ?? "muster");
  rig.maas.sim.region.forceStatus(machine, STATUS.deployed);
  const second = await startFull(rig, host);
  expect(await drive(second.id), await driver.story(second.id)).toMatchObject({ stage: "release_maas_node" });
  expect(machineOf(host)).toMatchObject({ status: STATUS.deployed });
});

it("asks for evidence of the erase also after a force for an agent that is gone", async () => {
  const host = await anotherHost();
  await setConnected(rig, host.nodeId, false);
  const { id } = await startFull(rig, host, { agent_wait_seconds: 0 });
  expect(await drive(id)).toMatchObject({ stage: "drain_node", code: "agent_unreachable" });
  await force(id);
  await until(id, "release_maas_node");
  releaseByOther(host);
  expect(await drive(id)).toMatchObject({ stage: "release_maas_node", code: "erase_unproven" });
  expect(await listHealthOverrides(db(), [host.nodeId])).toMatchObject([{ neededErase: "quick" }]);
  // A person erases the disks as the hub advises, and then sends the wrong verb.
  releaseByOther(host, `muster decommission ${id}`);
  await force(id);
  expect(await drive(id), await driver.story(id)).toEqual(DONE);
  expect(await listHealthOverrides(db(), [host.nodeId])).toEqual([]);
});

it("does not skip the work of an agent that only reconnects after a force", async () => {
  const host = await anotherHost();
  await setConnected(rig, host.nodeId, false);
  const { id } = await startFull(rig, host, { agent_wait_seconds: 0 });
  expect(await drive(id)).toMatchObject({ stage: "drain_node", code: "agent_unreachable" });
  await force(id);
  await setConnected(rig, host.nodeId, true);
  await until(id, "cleanup_storage");
  await setConnected(rig, host.nodeId, false);
  expect(await drive(id)).toMatchObject({ stage: "cleanup_storage", code: "agent_unreachable" });
  await setConnected(rig, host.nodeId, true);
  await driver.verb(id, "resume");
  expect(await drive(id), await driver.story(id)).toEqual(DONE);
  expect(await driver.story(id)).toContain("cleanup_storage succeeded");
});

it("keeps every onboarding away from its host, until the machine is out of MAAS", async () => {
  const host = await anotherHost();
  const { id } = await startFull(rig, host);
  await until(id, "remove_maas_record");
  expect(await nodeOf(host.nodeId)).toMatchObject({ status: "deleted" });
  const request = { site_id: rig.siteId, profile_id: rig.profileId, sku_id: SKU, ipmi_ip: host.box.bmcAddress };
  const onboard = (hostname: string) =>
    inTx((tx) => startOnboarding(tx, { request: { ...request, hostname }, requestedBy: "ann" }));
  for (const hostname of [host.hostname, "another-name"])
    await expect(onboard(hostname)).rejects.toMatchObject({ code: "onboarding_exists" });
  expect(await drive(id)).toEqual(DONE);
});

describe("the secrets", () => {
  it("of the node go, and those of the site and of other hosts stay", async () => {
    const host = await anotherHost();
    const override = async (selectorType: "hostname" | "ipmi_ip", selectorValue: string): Promise<string> => {
      const overrideId = randomUUID();
      const vaultPath = SECRET_PATHS.powerOverride(rig.siteId, overrideId);
      await rig.secrets.write(vaultPath, { user: "u", pass: "p" });
      const row = { id: overrideId, siteId: rig.siteId, selectorType, selectorValue, vaultPath };
      await inTx((tx) => insertPowerOverride(tx, row));
      return vaultPath;
    };
    const own = [await override("hostname", host.hostname), await override("ipmi_ip", host.box.bmcAddress)];
    const other = await override("hostname", "somebody-else");
    const { id } = await startFull(rig, host);
    await driver.drive(id, (row) => (row.stage === "cleanup_secrets" ? null : plainly));
    const before = [...rig.secrets.entries.keys()];
    expect(await drive(id)).toEqual(DONE);
    expect(before.filter((path) => !rig.secrets.entries.has(path)).sort()).toEqual([...own].sort());
    const rows = await db().select().from(maasPowerCredentialOverrides);
    expect(rows.filter(({ status }) => status === "active").map(({ vaultPath }) => vaultPath)).toEqual([other]);
  });
});

describe("the end of an operation that has released the machine", () => {
  const loginOf = async ({ hostname }: DeployedHost): Promise<string> => {
    const id = randomUUID();
    const vaultPath = SECRET_PATHS.powerOverride(rig.siteId, id);
    await rig.secrets.write(vaultPath, { user: "u", pass: "p" });
    const row = { id, siteId: rig.siteId, selectorType: "hostname", selectorValue: hostname, vaultPath } as const;
    await inTx((tx) => insertPowerOverride(tx, row));
    return id;
  };
  const shownOf = async (id: WorkflowId) => {
    const shown = await readDecommission(db(), id);
    if (shown === null) throw new Error("the decommission is gone");
    return { ...shown, left: (shown.error_details as { left?: string[] }).left ?? [] };
  };

  it("names each leftover if a person cancels it, and what to do next", async () => {
    const host = await anotherHost();
    const login = await loginOf(host);
    const { id } = await startFull(rig, host);
    await until(id, "power_off_maas_node");
    await driver.verb(id, "cancel");
    expect((await drive(id)).status).toBe("cancelled");
    const { error_message: message, next_action: next, left } = await shownOf(id);
    expect(left).toEqual([
      `Node ${host.hostname} stays retired and cannot be activated again, because its machine was released, which cannot be undone.`,
      `Machine ${host.machine.systemId} is 'Ready' in MAAS, although the request asks to delete it.`,
      "Nothing proves that the host is off: its BMC was not asked after the release.",
      `The secret store still has the BMC login ${login} (hostname ${host.hostname}).`,
    ]);
    expect(message).toBe(left.join(" "));
    for (const todo of ["Remove the node.", "Delete the machine in MAAS", "machine is off", login])
      expect(next).toContain(todo);
  });

  it("names them in the evidence if it fails, and no removed secret after the remove", async () => {
    const host = await anotherHost();
    const login = await loginOf(host);
    const { id } = await startFull(rig, host);
    await until(id, "release_maas_node");
    releaseByOther(host);
    expect(await drive(id)).toMatchObject({ code: "erase_unproven" });
    const released = (await shownOf(id)).left.join("\n");
    expect(released).toContain("erase of the disks (quick)");
    expect(released).toContain(login);
    await force(id);
    await until(id, "remove_maas_record");
    host.machine.hostname = "taken";
    expect(await drive(id)).toMatchObject({ code: "node_state_conflict" });
    const removed = (await shownOf(id)).left.join("\n");
    expect(removed).toContain("although the request asks to delete it");
    expect(removed).toContain("erase of the disks (quick) ended well, and ann decided");
    expect(removed).not.toContain(login);
  });

  it("names a login that stays although it completes", async () => {
    const host = await anotherHost();
    const { id } = await startFull(rig, host);
    const login = await loginOf(host);
    expect(await drive(id), await driver.story(id)).toEqual(DONE);
    const { error_message: message, next_action: next, error_code: code } = await shownOf(id);
    expect(message).toContain(`The secret store keeps the BMC login ${login}`);
    expect(next).toContain(`Delete the BMC login ${login}`);
    expect(code).toBeNull();
  });
});

describe("the machine in MAAS", () => {
  it("stays if it has another name, and a cancel names what was not done", async () => {
    const host = await anotherHost();
    const { id } = await startFull(rig, host);
    await until(id, "remove_maas_record");
    host.machine.hostname = "taken";
    expect(await drive(id)).toMatchObject({ stage: "remove_maas_record", code: "node_state_conflict" });
    await driver.verb(id, "cancel");
    expect((await drive(id)).status).toBe("cancelled");
    expect(machineOf(host)).toBeDefined();
    expect((await readWorkflow(db(), id))?.nextAction).toContain("the machine in MAAS");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "deleted" });
  });
});
