import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { readInventory } from "../../../hub/db/queries/node-inventories.ts";
import { listNodeRows } from "../../../hub/db/queries/node-reads.ts";
import { readNode } from "../../../hub/db/queries/nodes.ts";
import { nodeConditions, nodes, type Task, tasks } from "../../../hub/db/schema/index.ts";
import { judgeInventory, storeCheck } from "../../../hub/node/hardware-check.ts";
import { schedulability } from "../../../hub/node/schedulable.ts";
import { schedulingFactsOf } from "../../../hub/node/scheduling-facts.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { UNKNOWN_TYPE } from "../../../hub/workflows/unknown-task-type.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { Driver } from "../../properties/drive.ts";
import { resultOnCleanHost } from "../../support/agent-results.ts";
import { makeSchedulable } from "../../support/allocatable-node.ts";
import { checkedHardware, MISSING_GPUS } from "../../support/checked-hardware.ts";
import { clean, playDecommissionedAgent } from "../../support/decommission-world.ts";
import { nodeInService, setConnected } from "../../support/node-in-service.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { inventoryOf } from "../../support/running-host.ts";

let rig: OnboardingRig;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 2 });
});
afterAll(() => rig.close());

async function nodeNow(nodeId: NodeId) {
  const { db } = rig.services;
  const rows = await listNodeRows(db, {}, { limit: 50, after: null });
  const row = rows.find(({ node }) => node.id === nodeId);
  if (row === undefined) throw new Error("there is no node");
  const { schedulable, reasons } = schedulability(schedulingFactsOf(row, false), row.conditions);
  const sku = row.conditions.find(({ type }) => type === "hardware.sku");
  return {
    status: row.node.status,
    schedulable,
    reasons: reasons.join("\n"),
    sku: sku && `${sku.status} ${sku.reason}`,
  };
}

const AS_IN_SKU = { status: "True", reason: "AsInSku", message: "m" } as const;
const OTHER_HARDWARE = { status: "False", reason: "OtherHardware", message: "m" } as const;
const SEVEN = "7 GPUs of AMD instead of 8";

describe("a host with seven of eight GPUs", () => {
  it("stops its onboarding before the node is active, and goes on when it is repaired", async () => {
    const driver = new Driver(rig.test, workflowsOf(rig.services), (id) => rig.playAgent(id));
    const { id, nodeId } = await rig.start(1);
    MISSING_GPUS.set(nodeId, 1);
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({
      status: "failed_manual_intervention",
      stage: "check_hardware",
      failureClass: "hardware_mismatch",
      failureCode: "sku_mismatch",
    });
    expect(failed.failureMessage).toContain(SEVEN);
    expect(await nodeNow(nodeId)).toMatchObject({
      status: "enrolling",
      schedulable: false,
      sku: "False OtherHardware",
    });
    await driver.verb(id, "resume");
    expect(await driver.drive(id)).toMatchObject({ stage: "check_hardware", failureCode: "sku_mismatch" });
    expect(await nodeNow(nodeId)).toMatchObject({ status: "enrolling", schedulable: false });
    MISSING_GPUS.delete(nodeId);
    await driver.verb(id, "resume");
    expect(await driver.drive(id), await driver.story(id)).toMatchObject({ status: "completed" });
    expect(await nodeNow(nodeId)).toMatchObject({ status: "active", sku: "True AsInSku" });
  });

  it("of an agent that is older than the hub stops its onboarding, and says what to do", async () => {
    const { id, nodeId } = await rig.start(2);
    const driver = new Driver(rig.test, workflowsOf(rig.services), async (one) => {
      await rig.services.db
        .update(tasks)
        .set({ state: "failed", errorCode: UNKNOWN_TYPE, finishedAt: sql`clock_timestamp()` })
        .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "node.check_hardware")));
      await rig.playAgent(one);
    });
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({ stage: "check_hardware", failureCode: "agent_outdated" });
    expect(failed.failureMessage).toContain("Update the agent and resume");
  });

  it("gets no new tenant if a GPU disappears in service, nor if all do", async () => {
    const nodeId = await nodeInService(rig, "in-service");
    const { inTx, db } = rig.services;
    await inTx((tx) => makeSchedulable(tx, nodeId));
    const report = async (gpus: number, more: { readonly gpus_counted?: boolean } = {}) => {
      const node = await readNode(db, nodeId);
      if (node === null) throw new Error("there is no node");
      await inTx((tx) =>
        judgeInventory(tx, node, { ...inventoryOf({ bootId: "boot", uuid: "", macs: [], gpus }), ...more }),
      );
      return nodeNow(nodeId);
    };
    await db
      .delete(nodeConditions)
      .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, "hardware.sku")));
    const unseen = await nodeNow(nodeId);
    expect(unseen, "before the first inventory").toMatchObject({ schedulable: false, sku: undefined });
    expect(unseen.reasons).toContain("hardware.sku was never reported");
    expect(await report(0, { gpus_counted: true })).toMatchObject({ schedulable: false, sku: "False OtherHardware" });
    await db
      .delete(nodeConditions)
      .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, "hardware.sku")));
    expect(await report(0)).toMatchObject({ schedulable: true, sku: "Unknown NotObserved" });
    await db.update(nodes).set({ sku: "gone" }).where(eq(nodes.id, nodeId));
    expect(await report(8), "a SKU that is gone").toMatchObject({ schedulable: true, sku: "Unknown NotObserved" });
    await db.update(nodes).set({ sku: SKU }).where(eq(nodes.id, nodeId));
    expect(await report(8)).toMatchObject({ schedulable: true, sku: "True AsInSku" });
    const lost = await report(7);
    expect(lost).toMatchObject({ schedulable: false, sku: "False OtherHardware" });
    expect(lost.reasons).toContain("hardware.sku is False: OtherHardware");
    expect(await report(0)).toMatchObject({ schedulable: false, sku: "False OtherHardware" });
    expect(await report(8)).toMatchObject({ schedulable: true });
  });

  it("of an agent that is older than the hub is judged by its conditions alone", async () => {
    const { id, nodeId } = await clean(rig, "soft_reset", "old-agent");
    const driver = new Driver(rig.test, workflowsOf(rig.services), async (one) => {
      const { db } = rig.services;
      await db
        .update(tasks)
        .set({ state: "failed", errorCode: UNKNOWN_TYPE, finishedAt: sql`clock_timestamp()` })
        .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "node.check_hardware")));
      await playDecommissionedAgent(rig, one);
    });
    expect(await driver.drive(id), await driver.story(id)).toMatchObject({ status: "completed" });
    expect(await driver.story(id)).toContain("The agent is older than the hub");
  });

  it("does not come back from a soft reset, and neither does a host with a broken GPU", async () => {
    const { id, nodeId } = await clean(rig, "soft_reset", "turned-over");
    let conditions: readonly object[] = [];
    const resultOf = async (task: Task): Promise<unknown> =>
      task.type === "node.check_hardware"
        ? { ...(await checkedHardware(rig.services.db, nodeId)), conditions }
        : resultOnCleanHost(task);
    const driver = new Driver(rig.test, workflowsOf(rig.services), (one) =>
      playDecommissionedAgent(rig, one, resultOf),
    );
    MISSING_GPUS.set(nodeId, 1);
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({ stage: "check_hardware", failureCode: "sku_mismatch" });
    expect(failed.failureMessage).toContain(SEVEN);
    expect(await nodeNow(nodeId)).toMatchObject({ schedulable: false, sku: "False OtherHardware" });
    MISSING_GPUS.delete(nodeId);
    const condition = {
      type: "health.gpu",
      reason: "GpuNeedsReset",
      message: "GPU 3",
      observed_at: new Date().toISOString(),
    };
    conditions = [{ ...condition, status: "False" }];
    await driver.verb(id, "resume");
    expect(await driver.drive(id)).toMatchObject({ stage: "check_hardware", failureCode: "host_unhealthy" });
    const broken = await nodeNow(nodeId);
    expect(broken).toMatchObject({ schedulable: false, sku: "True AsInSku" });
    expect(broken.reasons).toContain("health.gpu is False: GpuNeedsReset");
    conditions = [{ ...condition, status: "Unknown", reason: "NotObserved", observed_at: new Date().toISOString() }];
    await driver.verb(id, "resume");
    expect(await driver.drive(id), await driver.story(id)).toMatchObject({ status: "completed" });
    expect((await nodeNow(nodeId)).reasons).not.toMatch(/hardware\.|health\.(gpu|disks|memory)/);
  });

  it("stays as the newest inventory says, when the result of an older check arrives late", async () => {
    const nodeId = await nodeInService(rig, "late-result");
    const { inTx, db } = rig.services;
    const node = await readNode(db, nodeId);
    if (node === null) throw new Error("there is no node");
    const checked = await checkedHardware(db, nodeId);
    /** Takes the result of a check that found as many GPUs, and returns how many GPUs the hub believes that the host has. */
    const late = async (gpus: number, boot_id: string, read_at_uptime?: number) => {
      const time = read_at_uptime === undefined ? {} : { read_at_uptime };
      const inventory = { ...checked.inventory, boot_id, ...time, gpus: checked.inventory.gpus.slice(0, gpus) };
      await inTx(async (tx) => {
        const result = { ...checked, boot_id, inventory };
        const found = { sku: gpus === 8 ? AS_IN_SKU : OTHER_HARDWARE, faults: [] };
        await storeCheck(tx, node, result, found);
      });
      const { sku } = await nodeNow(nodeId);
      const believed = (await readInventory(db, nodeId))?.gpus.length;
      expect(sku, "the condition fits the inventory").toBe(believed === 8 ? "True AsInSku" : "False OtherHardware");
      return believed;
    };
    // The session of `nodeInService` is of the boot "boot".
    expect(await late(8, "earlier boot", 900)).toBe(8);
    expect(await late(7, "other earlier boot", 100), "the stored inventory is not of the session's boot").toBe(7);
    expect(await late(8, "boot", 100), "the session's boot").toBe(8);
    expect(await late(7, "earlier boot", 5_000), "an earlier boot").toBe(8);
    expect(await late(7, "boot", 99.5), "earlier in the same boot").toBe(8);
    expect(await late(7, "boot", 100), "at the same time").toBe(7);
    expect(await late(8, "boot"), "from an agent that tells no time").toBe(8);
    expect(await late(7, "boot", 1), "after an inventory without a time").toBe(7);
    await setConnected(rig, nodeId, false);
    expect(await late(8, "earlier boot", 5), "after the session fell silent").toBe(7);
  });
});
