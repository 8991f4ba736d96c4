import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAllocation } from "../../hub/allocations/create-allocation.ts";
import { releaseAllocation } from "../../hub/allocations/end-allocation.ts";
import { and, eq, sql } from "../../hub/db/orm.ts";
import { readAllocation } from "../../hub/db/queries/allocations.ts";
import { readBaseline } from "../../hub/db/queries/node-baselines.ts";
import { listHealthOverrides } from "../../hub/db/queries/node-health-overrides.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import {
  allocations,
  nodeCertificates,
  nodes,
  sanitizationRecords,
  type Task,
  tasks,
  type Workflow as WorkflowRow,
} from "../../hub/db/schema/index.ts";
import { enterDraining, leaveDraining, quarantineUnclean, returnCleanNode } from "../../hub/node/lifecycle.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { quarantineNode } from "../../hub/reconciler/operator-quarantine.ts";
import type { DecommissionState } from "../../hub/workflows/decommission/decommission-context.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { startOnboarding } from "../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { AllocationCreate } from "../../shared/api/allocations.ts";
import type { NodeId, TaskId, WorkflowId } from "../../shared/ids.ts";
import { readRecord, type SanitizationRecord } from "../../shared/sanitization-record.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { EMPTY_SNAPSHOT, resultOnCleanHost } from "../support/agent-results.ts";
import { endTask, makeSchedulable, SSH_KEY } from "../support/allocatable-node.ts";
import { playDecommissionedAgent, recordBaseline, requireMemory } from "../support/decommission-world.ts";
import { nodeInService, setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { type DeployedHost, hostInService, playReimagedAgent, startReimage } from "../support/release-world.ts";
import { Driver, plainly } from "./drive.ts";

/** Tests what a reimage may not do to its host, and who owns a node's quarantine (decisions N2, N4). */
let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 16 });
});
afterAll(() => rig?.close());

const db = () => rig.test.database.db;
const kinds = () => workflowsOf(rig.services);
const inTx: OnboardingRig["services"]["inTx"] = (fn) => rig.services.inTx(fn);
const nodeOf = async (id: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, id)))[0];
const liveCertificates = async (id: NodeId) =>
  (await db().select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, id))).filter(
    ({ revokedAt }) => revokedAt === null,
  ).length;
const anotherHost = (): Promise<DeployedHost> => hostInService(rig, ++boxes, `again-${boxes}`);
/** Makes a `Driver` for a reimage, with a simulated agent before the release and after the new deploy. */
const driverOf = (
  { machine }: DeployedHost,
  agent: "comes" | "stays away" = "comes",
  resultOf: (task: Task) => unknown = resultOnCleanHost,
): Driver =>
  new Driver(rig.test, kinds(), async (id) => {
    if (agent === "stays away") return;
    await playReimagedAgent(rig, id, machine.systemId, resultOf);
  });
const onboard = ({ hostname, box }: DeployedHost) =>
  inTx((tx) =>
    startOnboarding(tx, {
      request: {
        site_id: rig.siteId,
        profile_id: rig.profileId,
        sku_id: SKU,
        hostname,
        ipmi_ip: box.bmcAddress,
      },
      requestedBy: "ann",
    }),
  );
const factsOf = (row: WorkflowRow) => row.state as DecommissionState;
const force = (workflowId: WorkflowId) =>
  inTx((tx) => applyForce(tx, kinds(), { workflowId, actor: "ann", role: "admin", reason: "its agent is gone" }));

const recordsOf = async (nodeId: NodeId): Promise<SanitizationRecord[]> => {
  const rows = await db()
    .select()
    .from(sanitizationRecords)
    .where(eq(sanitizationRecords.nodeId, nodeId))
    .orderBy(sanitizationRecords.sequence);
  return rows.map(({ text }) => {
    const record = readRecord(text);
    if (typeof record === "string") throw new Error(record);
    return record;
  });
};
/** The verdict of a sanitization record, with the codes of its reasons. */
const verdictOf = (record: SanitizationRecord | undefined) =>
  record && [record.verdict, ...record.reasons.map(({ code }) => code)];

describe("a reimage", () => {
  it("keeps every onboarding away from its host until it is over", async () => {
    const host = await anotherHost();
    const { id } = await startReimage(rig, host);
    const driver = driverOf(host);
    await driver.drive(id, (row) => (factsOf(row).release_intent === undefined ? plainly : null));
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "enrolling" });
    await expect(onboard(host)).rejects.toMatchObject({ code: "onboarding_exists" });
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(rig.maas.sim.region.state.counters[host.machine.systemId]).toMatchObject({ deploy: 2, release: 1 });
    // Only a person chooses an erase, so a reimage without an erase does not keep the node from becoming active.
    expect((await recordsOf(host.nodeId)).map(verdictOf)).toEqual([["incomplete", "erase_not_asked"]]);
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "active", cordonReason: null });
  });

  it("that is cancelled after MAAS refused the release leaves the old system its certificate", async () => {
    const host = await anotherHost();
    const { id } = await startReimage(rig, host);
    rig.maas.sim.faults.add({ match: { op: "release" }, kind: "status", code: 403, body: "Forbidden", times: 1e6 });
    const driver = driverOf(host);
    const failed = await driver.drive(id);
    expect(failed.status, await driver.story(id)).toMatch(/^failed_/);
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "enrolling" });
    const before = await liveCertificates(host.nodeId);
    expect(before).toBeGreaterThan(0);
    rig.maas.sim.faults.clear();
    await driver.verb(id, "cancel");
    // The cancel of a reimage waits until no release call of the hub can still arrive at MAAS. The test moves the start of the cancel's wait into the
    // past.
    const end = await driver.drive(id, () => async (look) => {
      await plainly(look);
      await db().execute(sql`
        update workflows set compensation = jsonb_set(compensation, '{startedAt}', '"2020-01-01T00:00:00.000Z"')
        where id = ${id} and compensation ->> 'startedAt' is not null`);
    });
    expect(end.status, await driver.story(id)).toBe("cancelled");
    expect(host.machine.status).toBe(STATUS.deployed);
    expect(await liveCertificates(host.nodeId)).toBe(before);
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "quarantined", cordonReason: null });
  });

  it("can be forced past an agent that is gone", async () => {
    const host = await anotherHost();
    await setConnected(rig, host.nodeId, false);
    const { id } = await startReimage(rig, host, { agent_wait_seconds: 0 });
    const away = driverOf(host, "stays away");
    const failed = await away.drive(id);
    expect(failed).toMatchObject({ stage: "drain_node", failureCode: "agent_unreachable" });
    await force(id);
    const driver = driverOf(host);
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "active", cordonReason: null });
  });

  it("does not release a machine that somebody has deployed again", async () => {
    const host = await anotherHost();
    const { id } = await startReimage(rig, host);
    const driver = driverOf(host);
    await driver.drive(id, (row) => (factsOf(row).release_failure_told === undefined ? plainly : null));
    const { username } = await (await rig.services.maas(rig.siteId)).whoami();
    rig.maas.sim.region.settle(host.machine);
    rig.maas.sim.region.forceStatus(host.machine, STATUS.deployed);
    rig.maas.sim.region.setOwner(host.machine, username);
    const end = await driver.drive(id);
    expect(end, await driver.story(id)).toMatchObject({ failureCode: "unexpected_maas_status" });
    expect((await readWorkflow(db(), id))?.failureMessage).toContain("somebody has deployed it again");
    expect(rig.maas.sim.region.state.counters[host.machine.systemId]?.release).toBe(1);
  });

  it("that restarts clean after its new deploy releases the machine and deploys it once more", async () => {
    const host = await anotherHost();
    const { id } = await startReimage(rig, host);
    const driver = driverOf(host);
    await driver.drive(id, (row) => (row.stage === "enable_node" ? null : plainly));
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "active" });
    await driver.verb(id, "restart_clean");
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(rig.maas.sim.region.state.counters[host.machine.systemId]).toMatchObject({ deploy: 3, release: 2 });
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "active", cordonReason: null });
  });

  it("that restarts after a failed deploy does not ask for another erase of the disks that it erased", async () => {
    const host = await anotherHost();
    const { region } = rig.maas.sim;
    region.state.plans[host.machine.systemId] = { commission: [], deploy: ["install_failure"] };
    const { id } = await startReimage(rig, host, { erase: "secure" });
    const driver = driverOf(host);
    expect(await driver.drive(id), await driver.story(id)).toMatchObject({ failureCode: "deploy_failed" });
    await driver.verb(id, "restart_clean");
    const end = await driver.drive(id);
    expect(region.state.counters[host.machine.systemId]).toMatchObject({ release: 2 });
    expect(end, await driver.story(id)).toMatchObject({ status: "completed", failureCode: null });
  });

  it("bars its node if a person forced it without evidence of the erase, until a reimage erases the disks", async () => {
    const host = await anotherHost();
    const { region } = rig.maas.sim;
    const overrides = () => listHealthOverrides(db(), [host.nodeId]);
    const driver = driverOf(host);
    const first = await startReimage(rig, host, { erase: "secure" });
    await driver.drive(first.id, ({ stage }) => (stage === "release_maas_node" ? null : plainly));
    region.setOwner(host.machine, null);
    region.forceStatus(host.machine, STATUS.ready);
    expect(await driver.drive(first.id)).toMatchObject({ failureCode: "erase_unproven" });
    expect(await overrides()).toMatchObject([{ source: "disk-erase", setBy: `operation:${first.id}` }]);
    await force(first.id);
    expect((await driver.drive(first.id)).status, await driver.story(first.id)).toBe("completed");
    const target = host.machine.systemId;
    expect(await overrides()).toMatchObject([{ source: "disk-erase", target, setBy: "operator:ann" }]);
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "active", cordonReason: null });
    const second = await startReimage(rig, host, { erase: "secure" });
    expect((await driver.drive(second.id)).status, await driver.story(second.id)).toBe("completed");
    expect(await overrides()).toEqual([]);
    const [waived, erased] = await recordsOf(host.nodeId);
    expect([verdictOf(waived), verdictOf(erased)]).toEqual([
      ["incomplete", "erase_waived"],
      ["incomplete", "erase_not_compared"],
    ]);
    expect(waived?.release).toMatchObject({ evidence: "none", waived_by: "ann" });
  });

  it("that is cancelled before its erase ends bars its node, until an erase that is as strong", async () => {
    const host = await anotherHost();
    const { region } = rig.maas.sim;
    const overrides = () => listHealthOverrides(db(), [host.nodeId]);
    const { erase } = region.timings;
    Object.assign(region.timings, { erase: 1e9 });
    const driver = driverOf(host);
    const first = await startReimage(rig, host, { erase: "secure" });
    await driver.drive(first.id, () => (host.machine.status === STATUS.disk_erasing ? null : plainly));
    Object.assign(region.timings, { erase });
    await driver.verb(first.id, "cancel");
    expect((await driver.drive(first.id)).status, await driver.story(first.id)).toBe("cancelled");
    const bar = { source: "disk-erase", setBy: `operation:${first.id}`, neededErase: "secure" };
    expect(await overrides()).toMatchObject([bar]);
    region.cancelJobs(host.machine);
    region.setOwner(host.machine, null);
    region.forceStatus(host.machine, STATUS.ready);
    for (const kind of ["none", "quick"] as const) {
      const { id } = await startReimage(rig, host, { erase: kind });
      expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
      expect(await overrides(), kind).toMatchObject([bar]);
    }
    const last = await startReimage(rig, host, { erase: "secure" });
    expect((await driver.drive(last.id)).status, await driver.story(last.id)).toBe("completed");
    expect(await overrides()).toEqual([]);
  });

  it("restores the quarantine of a person", async () => {
    const host = await anotherHost();
    await inTx((tx) => quarantineNode(tx, host.nodeId, "a GPU is faulty"));
    const { id } = await startReimage(rig, host);
    const driver = driverOf(host);
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "quarantined", quarantinedBy: "operator" });
  });
});

describe("the record of a reimage", () => {
  it("says that the new system's agent cleaned the GPUs and signed, and what MAAS reported about the disks", async () => {
    const host = await anotherHost();
    const { nodeId } = host;
    await requireMemory(rig, nodeId, host.hostname, { gpu_claim_level: "overwritten", turnover_mode: "reimage" });
    await inTx((tx) => makeSchedulable(tx, nodeId));
    const request = { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
    const { id: allocation } = await inTx((tx) => createAllocation(tx, AllocationCreate.parse(request), "ann"));
    const granted = await inTx((tx) => readAllocation(tx, allocation));
    await inTx((tx) => endTask(tx, granted?.grantTaskId as TaskId, { startedAt: new Date() }));
    await db().update(allocations).set({ status: "active" }).where(eq(allocations.id, allocation));
    await inTx((tx) =>
      releaseAllocation(tx, kinds(), allocation, {
        reason: "over",
        actor: "ann",
        role: "admin",
        requestId: "r",
        forced: false,
      }),
    );
    const operation = (await readAllocation(db(), allocation))?.decommissionId as WorkflowId;
    const driver = driverOf(host);
    // With the setting `enable_disk_erasing_on_release` MAAS stores what its release script says about each disk.
    const { config } = rig.maas.sim.region.state;
    config["enable_disk_erasing_on_release"] = true;
    expect((await driver.drive(operation)).status, await driver.story(operation)).toBe("completed");
    config["enable_disk_erasing_on_release"] = false;
    const [record, ...others] = await recordsOf(nodeId);
    expect(others).toEqual([]);
    const generation = (await nodeOf(nodeId))?.generation;
    expect(record).toMatchObject({
      verdict: "clean",
      trust: "reimaged_cold",
      signed_by_agent: true,
      node: { generation },
      allocation: { id: allocation, tenant: "acme" },
      operation: { mode: "reimage" },
      release: {
        maas_system_id: host.machine.systemId,
        generation: 0,
        erase: "secure",
        evidence: "reported_by_maas",
        disks_reported: host.machine.blockDevices.length,
      },
      residue: { verdict: "clean" },
    });
    expect(record?.gpus.map(({ level }) => level)).toEqual(Array(8).fill("overwritten"));
    expect(record?.claims.filter((claim) => / image ubuntu[/]\w+, /.test(claim))).toHaveLength(8);
    expect(record?.tasks.map(({ type }) => type)).not.toContain("node.drain");
    expect(await readAllocation(db(), allocation)).toMatchObject({ status: "ended" });
    expect((await readBaseline(db(), nodeId, generation ?? -1))?.baseline.snapshot).toEqual(EMPTY_SNAPSHOT);
  });

  it("is not written for a new system that is not as at its first boot, or whose baseline is missing", async () => {
    const host = await anotherHost();
    const { id } = await startReimage(rig, host);
    const left = { entries: [{ name: "/usr/local/bin/door", digest: "AAAAAAAAAAAAAAAA" }] };
    let reads = 0;
    const driver = driverOf(host, "comes", (task) => {
      if (task.type !== "node.validate_clean") return resultOnCleanHost(task);
      reads += 1;
      if (reads === 1) return null;
      return { boot_id: "boot", snapshot: reads === 3 ? { ...EMPTY_SNAPSHOT, setuid_files: left } : EMPTY_SNAPSHOT };
    });
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({
      stage: "validate_clean_node",
      failureCode: "residue_found",
    });
    expect(await driver.story(id)).toContain("take_baseline retrying");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "quarantined", quarantinedBy: "cleanup" });
    expect(await recordsOf(host.nodeId)).toEqual([]);
    await driver.verb(id, "cancel");
    expect((await driver.drive(id)).status).toBe("cancelled");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "quarantined", cordonReason: null });
  });

  it("keeps a node out of service if the reimage is cancelled before the GPUs of the new system are clean", async () => {
    const host = await anotherHost();
    const { id } = await startReimage(rig, host);
    const driver = driverOf(host);
    await driver.drive(id, (row) => (row.stage === "scrub_gpu" ? null : plainly));
    await driver.verb(id, "cancel");
    expect((await driver.drive(id)).status).toBe("cancelled");
    expect(await nodeOf(host.nodeId)).toMatchObject({ status: "quarantined", quarantinedBy: "cleanup" });
  });
});

describe("the quarantine of a node", () => {
  const statusNow = async (id: NodeId) => {
    const node = await nodeOf(id);
    return [node?.status, node?.quarantinedBy];
  };

  it("that a cleanup set ends when the host is clean", async () => {
    const id = await nodeInService(rig, "unclean-1");
    await inTx((tx) => quarantineUnclean(tx, id, "residue"));
    expect(await statusNow(id)).toEqual(["quarantined", "cleanup"]);
    await inTx((tx) => returnCleanNode(tx, id, "clean"));
    expect(await statusNow(id)).toEqual(["active", null]);
  });

  it("that the reconciler set becomes the cleanup's if the host is not clean", async () => {
    const id = await nodeInService(rig, "unclean-2");
    await inTx((tx) => moveNode(tx, id, { from: "active", to: "quarantined", owner: "reconciler" }, "broken"));
    await inTx((tx) => quarantineUnclean(tx, id, "residue"));
    expect(await statusNow(id)).toEqual(["quarantined", "cleanup"]);
  });

  it("that a person set stays the person's, whatever a cleaning finds", async () => {
    const id = await nodeInService(rig, "unclean-3");
    await inTx((tx) => quarantineNode(tx, id, "a fan is loud"));
    await inTx((tx) => quarantineUnclean(tx, id, "residue"));
    await inTx((tx) => returnCleanNode(tx, id, "clean"));
    expect(await statusNow(id)).toEqual(["quarantined", "operator"]);
  });

  it("that was there before a storage cleanup stays, because only a part of the host is cleaned", async () => {
    const id = await nodeInService(rig, "unclean-5");
    await recordBaseline(rig, id);
    await inTx((tx) => quarantineUnclean(tx, id, "residue"));
    const asked = { mode: "storage_cleanup", reason: "full", scope: "weka", agent_wait_seconds: 900 } as const;
    const { decommission_id: cleanup } = await inTx((tx) => startDecommission(tx, id, asked, "ann"));
    const driver = new Driver(rig.test, kinds(), (one) => playDecommissionedAgent(rig, one));
    expect((await driver.drive(cleanup)).status, await driver.story(cleanup)).toBe("completed");
    expect(await statusNow(id)).toEqual(["quarantined", "cleanup"]);
    expect(await nodeOf(id)).toMatchObject({ cordonReason: null });
    const cleaned = and(eq(tasks.nodeId, id), eq(tasks.type, "node.storage_cleanup"));
    expect((await db().select().from(tasks).where(cleaned)).map(({ input }) => input)).toMatchObject([
      { scope: "weka" },
    ]);
  });

  it("that a cancelled drain restores waits for a person", async () => {
    const id = await nodeInService(rig, "unclean-4");
    await inTx((tx) => quarantineNode(tx, id, "a fan is loud"));
    const operation = crypto.randomUUID();
    await inTx((tx) => enterDraining(tx, id, operation, "drained"));
    await inTx((tx) => leaveDraining(tx, id, operation, "quarantined", "cancelled"));
    await inTx((tx) => returnCleanNode(tx, id, "clean"));
    expect(await statusNow(id)).toEqual(["quarantined", "operator"]);
  });
});
