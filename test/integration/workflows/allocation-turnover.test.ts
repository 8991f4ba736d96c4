import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAllocation } from "../../../hub/allocations/create-allocation.ts";
import { releaseAllocation } from "../../../hub/allocations/end-allocation.ts";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { and, eq, inArray, sql } from "../../../hub/db/orm.ts";
import { noteRootBy, readAllocation } from "../../../hub/db/queries/allocations.ts";
import { keepInventory } from "../../../hub/db/queries/node-inventories.ts";
import { waitKey, wakeWorkflows } from "../../../hub/db/queries/workflow-wakes.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import {
  domainEvents,
  nodeBaselines,
  nodeDecommissions,
  nodes,
  sanitizationRecords,
  type Task,
  tasks,
} from "../../../hub/db/schema/index.ts";
import { applyVerb } from "../../../hub/workflows/engine/apply-verb.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { AllocationCreate } from "../../../shared/api/allocations.ts";
import type { AllocationId, NodeId } from "../../../shared/ids.ts";
import { readRecord } from "../../../shared/sanitization-record.ts";
import type { TaskInput } from "../../../shared/tasks/index.ts";
import { EMPTY_SNAPSHOT, resultOnCleanHost } from "../../support/agent-results.ts";
import { makeSchedulable, onboardedWith, SSH_KEY } from "../../support/allocatable-node.ts";
import { checkedHardware } from "../../support/checked-hardware.ts";
import { recordBaseline } from "../../support/decommission-world.ts";
import { quietLog } from "../../support/log.ts";
import { nodeInService } from "../../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { hostInService } from "../../support/release-world.ts";
import { startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

let rig: OnboardingRig;
let runner: WorkflowRunner;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 3 });
  runner = startRunner(rig);
});
afterAll(async () => {
  await runner?.close();
  await rig?.close();
});

const DISK = { name: "/dev/nvme0n1", model: "FAST SSD", bytes: 1_000_000, kind: "NVMe" };
const NO_HARDWARE = {
  hostname: "turn-10",
  boot_id: "boot",
  system: { manufacturer: "", model: "", uuid: "" },
  os: { distro: "", release: "", kernel: "", arch: "" },
  cpu: { model: "", cores: 1, sockets: 1 },
  memory_bytes: 0,
  interfaces: [],
  gpus: [],
};
const db = () => rig.services.db;
const { kinds, by } = {
  kinds: () => workflowsOf(rig.services),
  by: { reason: "the order is over", actor: "ann", role: "admin", requestId: "r" },
};
const step = (name: string, outcome: string) => ({ step: name, target: "alice", outcome, message: "", evidence: {} });
/** The results that an agent reports for successful tasks, by task type. */
const RESULTS: Readonly<Record<string, object>> = {
  "allocation.grant_user": { uid: 30_001, steps: [step("account", "ok")] },
  "allocation.revoke_user": { uid: 30_001, steps: [step("account", "ok")] },
  "node.drain": { drained: true, sessions_closed: 0, remaining_users: [] },
  "node.undrain": { was_draining: true },
};
/** Simulates the node's agent: each waiting task succeeds, unless `more` gives another end for the task's type. */
async function playAgent(
  nodeId: NodeId,
  more: Readonly<Record<string, object | ((order: Task) => object)>> = {},
): Promise<void> {
  const waiting = await db()
    .select()
    .from(tasks)
    .where(and(eq(tasks.nodeId, nodeId), inArray(tasks.state, ["queued", "offered"])));
  for (const task of waiting) {
    const { id, type } = task;
    const given = more[type];
    await rig.services.inTx(async (tx) => {
      const end = {
        state: "succeeded",
        attempts: 1,
        epoch: task.epoch + 1,
        result:
          RESULTS[type] ??
          resultOnCleanHost(task) ??
          (type === "node.check_hardware" ? await checkedHardware(db(), nodeId) : null),
        finishedAt: sql`clock_timestamp()`,
      } as const;
      await tx
        .update(tasks)
        .set({ ...end, leaseUntil: null, ...(typeof given === "function" ? given(task) : given) })
        .where(eq(tasks.id, id));
      await wakeWorkflows(tx, [waitKey.task(id)]);
    });
  }
  await sweepAllocations({ ...rig.services, log: quietLog });
}
const request = (nodeId: NodeId, root = false) =>
  AllocationCreate.parse({ node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY], root });
async function allocate(nodeId: NodeId, root = false): Promise<AllocationId> {
  const { id } = await rig.services.inTx((tx) => createAllocation(tx, request(nodeId, root), "ann"));
  await playAgent(nodeId);
  expect((await readAllocation(db(), id))?.status).toBe("active");
  return id;
}
const release = (id: AllocationId) =>
  rig.services.inTx((tx) => releaseAllocation(tx, kinds(), id, { ...by, forced: false }));
const modeOf = async (id: AllocationId) => {
  const row = await readAllocation(db(), id);
  if (row?.decommissionId == null) throw new Error("no turnover has begun");
  const found = await db()
    .select()
    .from(nodeDecommissions)
    .where(eq(nodeDecommissions.decommissionId, row.decommissionId));
  return found[0]?.mode;
};

describe("after a tenant without root", () => {
  it("the node is cleaned in place, and the next tenant gets it", async () => {
    const nodeId = await nodeInService(rig, "turn-1");
    await recordBaseline(rig, nodeId);
    await rig.services.inTx((tx) => makeSchedulable(tx, nodeId));
    const id = await allocate(nodeId);
    await release(id);
    expect(await modeOf(id)).toBe("soft_reset");
    const patience = sql`input = input || '{"agent_wait_seconds": 80000}'`;
    const turnover = (await readAllocation(db(), id))?.decommissionId ?? null;
    await db().execute(sql`update workflows set ${patience} where id = ${turnover}`);
    const ended = await until("the allocation has ended", async () => {
      await playAgent(nodeId);
      const row = await readAllocation(db(), id);
      return row?.status === "ended" ? row : undefined;
    });
    expect(ended).toMatchObject({ endReason: by.reason, endForced: false });
    const [revoked] = await db()
      .select()
      .from(tasks)
      .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "allocation.revoke_user")));
    expect(revoked).toMatchObject({
      state: "succeeded",
      input: { allocation_id: id, login_user: "alice", plan: false },
    });
    // The hub may have queued the drain before the test changed the operation's patience.
    const { rows: impatient } = await db().execute(
      sql`select type from tasks where workflow_id = ${turnover} and type <> 'node.drain' and deadline - created_at < interval '80000 s'`,
    );
    expect(impatient, "tasks that expire before the operator's patience ends").toEqual([]);
    const [node] = await db().select().from(nodes).where(eq(nodes.id, nodeId));
    expect(node).toMatchObject({ status: "active", cordonReason: null });
    const [record] = await db().select().from(sanitizationRecords).where(eq(sanitizationRecords.nodeId, nodeId));
    expect(record).toMatchObject({ sequence: 1, verdict: "clean", tenant: "acme", allocationId: id });
    expect(await allocate(nodeId)).not.toBe(id);
    const told = await db()
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `allocations/${id}`))
      .orderBy(domainEvents.seq);
    expect(told.map(({ type }) => type.split(".").at(-1))).toEqual(["started", "active", "ending", "ended"]);
  });

  it("the purge of a disk counts only if its evidence fits the order", async () => {
    const nodeId = await nodeInService(rig, "turn-10");
    await recordBaseline(rig, nodeId);
    const profileId = await rig.addProfile("purging", { purge_disks: ["S-1", "S-2"] });
    await rig.services.inTx(async (tx) => {
      await makeSchedulable(tx, nodeId);
      await onboardedWith(tx, { nodeId, siteId: rig.siteId, profileId, hostname: "turn-10" });
    });
    await keepInventory(db(), nodeId, { ...NO_HARDWARE, disks: [{ ...DISK, serial: "S-1" }] });
    const id = await allocate(nodeId);
    await release(id);
    const evidence = {
      media_kind: "disk",
      serial: "S-1",
      technique: "NVMe sanitize, block erase",
      method: "purge",
      bytes_treated: DISK.bytes,
      bytes_total: DISK.bytes,
      verification: "markers at 704 blocks of 4096 bytes",
      verification_result: "all 704 blocks read only the byte 0x00",
    };
    const orders: unknown[] = [];
    const purged = (more: (order: TaskInput<"node.storage_cleanup">) => object) => (task: Task) => {
      const order = task.input as TaskInput<"node.storage_cleanup">;
      orders.push([order.disks, order.disk_pool]);
      const told = { ...evidence, sample_seed: order.sample_seed, ...more(order) };
      return { result: { steps: [{ ...step("disk", "ok"), target: "S-1", evidence: told }] } };
    };
    const operation = (await readAllocation(db(), id))?.decommissionId;
    if (operation == null) throw new Error("no turnover has begun");
    for (const [answer, says] of [
      [() => ({ result: { steps: [step("temporary", "ok")] } }), "disk S-1: not_found"],
      [purged(() => ({ sample_seed: "0f".repeat(32) })), "disk S-1: other_seed"],
    ] as const) {
      const failed = await until(says, async () => {
        await playAgent(nodeId, { "node.storage_cleanup": answer });
        const row = await readWorkflow(db(), operation);
        return row?.status.startsWith("failed") === true ? row : undefined;
      });
      expect([failed.failureCode, failed.failureMessage]).toEqual(["cleaning_failed", expect.stringContaining(says)]);
      await rig.services.inTx((tx) => applyVerb(tx, kinds(), { ...by, workflowId: operation, verb: "resume" }));
    }
    await until("the allocation has ended", async () => {
      await playAgent(nodeId, { "node.storage_cleanup": purged(() => ({})) });
      return (await readAllocation(db(), id))?.status === "ended" ? true : undefined;
    });
    expect(orders).toEqual(orders.map(() => [[{ serial: "S-1", wwn: null }], ["S-2"]]));
    const [row] = await db().select().from(sanitizationRecords).where(eq(sanitizationRecords.nodeId, nodeId));
    expect(row?.verdict).toBe("clean");
    expect(readRecord(row?.text ?? "")).toMatchObject({
      media: expect.arrayContaining([expect.objectContaining({ serial: "S-1", method: "purge" })]),
    });
  });

  it("the node stays out of the pool while the account is still on the host", async () => {
    const nodeId = await nodeInService(rig, "turn-2");
    await rig.services.inTx((tx) => makeSchedulable(tx, nodeId));
    const id = await allocate(nodeId);
    await release(id);
    const refused = { result: { uid: 30_001, steps: [step("home", "failed")] } };
    await until("the turnover has failed", async () => {
      await playAgent(nodeId, { "allocation.revoke_user": refused });
      const row = await readAllocation(db(), id);
      const { rows } = await db().execute<{ status: string }>(
        sql`select status from workflows where id = ${row?.decommissionId ?? null}`,
      );
      return rows[0]?.status.startsWith("failed") === true ? true : undefined;
    });
    expect((await readAllocation(db(), id))?.status).toBe("ending");
    await expect(rig.services.inTx((tx) => createAllocation(tx, request(nodeId), "bob"))).rejects.toMatchObject({
      code: "allocation_exists",
    });
  });
});

describe("a thing that a tenant left on the host", () => {
  const LEFT = { entries: [{ name: "/usr/local/bin/door", digest: "AAAAAAAAAAAAAAAA" }] };
  const found = { result: { boot_id: "boot", snapshot: { ...EMPTY_SNAPSHOT, setuid_files: LEFT } } };
  const workflowOf = async (id: AllocationId) => {
    const operation = (await readAllocation(db(), id))?.decommissionId;
    return operation == null ? null : readWorkflow(db(), operation);
  };

  it("quarantines the node by name, until the host is found clean", async () => {
    const nodeId = await nodeInService(rig, "turn-5");
    await recordBaseline(rig, nodeId);
    await rig.services.inTx((tx) => makeSchedulable(tx, nodeId));
    const id = await allocate(nodeId);
    await release(id);
    const failed = await until("the turnover has failed", async () => {
      await playAgent(nodeId, { "node.validate_clean": found });
      const row = await workflowOf(id);
      return row?.status.startsWith("failed") === true ? row : undefined;
    });
    expect(failed).toMatchObject({ failureClass: "state_ambiguity", failureCode: "residue_found" });
    expect(failed.failureMessage).toContain("setuid_files: added /usr/local/bin/door");
    const nodeNow = async () => (await db().select().from(nodes).where(eq(nodes.id, nodeId)))[0];
    expect(await nodeNow()).toMatchObject({ status: "quarantined", quarantinedBy: "cleanup" });
    await rig.services.inTx((tx) => applyVerb(tx, kinds(), { ...by, workflowId: failed.id, verb: "resume" }));
    await until("the allocation has ended", async () => {
      await playAgent(nodeId);
      return (await readAllocation(db(), id))?.status === "ended" ? true : undefined;
    });
    expect(await nodeNow()).toMatchObject({ status: "active", quarantinedBy: null, cordonReason: null });
  });

  it("counts as left if the node has lost its baseline, and a node without a baseline gets no tenant", async () => {
    const nodeId = await nodeInService(rig, "turn-6");
    await rig.services.inTx((tx) => makeSchedulable(tx, nodeId));
    const id = await allocate(nodeId);
    const other = await nodeInService(rig, "turn-7");
    await rig.services.inTx((tx) => makeSchedulable(tx, other));
    await db().delete(nodeBaselines);
    await expect(allocate(other)).rejects.toMatchObject({
      code: "node_not_schedulable",
      message: expect.stringContaining("it has no residue baseline"),
    });
    await release(id);
    const failed = await until("the turnover has failed", async () => {
      await playAgent(nodeId);
      const row = await workflowOf(id);
      return row?.status.startsWith("failed") === true ? row : undefined;
    });
    expect(failed.failureCode).toBe("residue_found");
    expect(failed.failureMessage).toContain("unreadable, The node has no baseline");
  });
});

describe("after a tenant with root", () => {
  it("which nobody granted, a soft reset stops and says how the tenant could get it", async () => {
    const nodeId = await nodeInService(rig, "turn-8");
    await recordBaseline(rig, nodeId);
    await rig.services.inTx((tx) => makeSchedulable(tx, nodeId));
    const id = await allocate(nodeId);
    const revoked = RESULTS["allocation.revoke_user"];
    for (const ways of [["group docker"], ["sudo rules"]]) {
      await release(id);
      const operation = (await readAllocation(db(), id))?.decommissionId;
      if (operation == null) throw new Error("no turnover has begun");
      const failed = await until("the soft reset has failed", async () => {
        await playAgent(nodeId, { "allocation.revoke_user": { result: { ...revoked, root_by: ways } } });
        const row = await readWorkflow(db(), operation);
        return row?.status.startsWith("failed") === true ? row : undefined;
      });
      expect(failed).toMatchObject({ failureClass: "state_ambiguity", failureCode: "tenant_had_root" });
      expect(failed.failureMessage).toContain(ways[0]);
      await rig.services.inTx((tx) => applyVerb(tx, kinds(), { ...by, workflowId: operation, verb: "cancel" }));
      await until("the soft reset is cancelled", async () => {
        await playAgent(nodeId);
        return (await readWorkflow(db(), operation))?.status === "cancelled" ? true : undefined;
      });
    }
    expect((await readAllocation(db(), id))?.rootBy).toEqual(["group docker", "sudo rules"]);
  });

  it("the node is reimaged, unless its profile allows a soft reset", async () => {
    const { nodeId } = await hostInService(rig, 1, "turn-3");
    const lenient = await rig.addProfile("lenient", { soft_reset_after_root: true });
    const kept = await hostInService(rig, 2, "turn-4", lenient);
    const found = await hostInService(rig, 3, "turn-9");
    for (const id of [nodeId, kept.nodeId, found.nodeId]) await rig.services.inTx((tx) => makeSchedulable(tx, id));
    await runner.close();
    const [gone, stays] = [await allocate(nodeId, true), await allocate(kept.nodeId, true)];
    const docker = await allocate(found.nodeId);
    await rig.services.inTx((tx) => noteRootBy(tx, docker, ["group docker"]));
    for (const id of [gone, stays, docker]) await release(id);
    expect([await modeOf(gone), await modeOf(stays), await modeOf(docker)]).toEqual([
      "reimage",
      "soft_reset",
      "reimage",
    ]);
  });
});
