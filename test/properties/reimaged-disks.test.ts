import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { listHealthOverrides } from "../../hub/db/queries/node-health-overrides.ts";
import { sanitizationRecords, type Task, tasks } from "../../hub/db/schema/index.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { readRecord } from "../../shared/sanitization-record.ts";
import type { TaskInput } from "../../shared/tasks/index.ts";
import { resultOnCleanHost } from "../support/agent-results.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { hostInService, playReimagedAgent, startReimage } from "../support/release-world.ts";
import { Driver } from "./drive.ts";

let rig: OnboardingRig;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 2 });
});
afterAll(() => rig?.close());

describe("the disks of a reimage", () => {
  it("stop it if the erase did not reach them, or if one is gone, unless a person decides otherwise", async () => {
    const host = await hostInService(rig, 1, "disks-1");
    const kinds = workflowsOf(rig.services);
    const overrides = () => listHealthOverrides(rig.test.database.db, [host.nodeId]);
    const print = { block: 100_000, digest: "AAAAAAAAAAAAAAAA" };
    const sample = { zeros: 703, one_byte: 0, data: 1, unreadable: 0, prints: [print], again: [] };
    const disk = {
      serial: "S-1",
      model: "FAST SSD",
      wwn: null,
      bytes: 2 ** 40,
      holds_system: false,
      sample,
      detail: "",
    };
    const orders: TaskInput<"node.sample_disks">[] = [];
    const unchanged = [{ ...disk, sample: { ...sample, prints: [], again: [print] } }];
    let now: object[] = unchanged;
    const answer = (task: Task): unknown => {
      if (task.type !== "node.sample_disks") return resultOnCleanHost(task);
      orders.push(task.input as TaskInput<"node.sample_disks">);
      return { boot_id: "boot", disks: orders.length === 1 ? [disk] : now, more: 0 };
    };
    const driver = new Driver(rig.test, kinds, (one) => playReimagedAgent(rig, one, host.machine.systemId, answer));
    const { id } = await startReimage(rig, host, { erase: "secure" });
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({ stage: "check_disks", failureCode: "erase_disproved" });
    expect(failed.failureMessage).toContain("disk S-1: 1 of 1 compared blocks");
    const [before, after] = orders;
    expect(after).toMatchObject({ key: before?.key, data_only: true, again: [{ serial: "S-1", blocks: [100_000] }] });
    expect([before?.data_only, before?.again, before?.seed === after?.seed]).toEqual([false, [], false]);
    expect(await overrides()).toMatchObject([
      { source: "disk-erase", setBy: `operation:${id}`, neededErase: "secure" },
    ]);
    now = [];
    await driver.verb(id, "resume");
    expect(await driver.drive(id)).toMatchObject({ stage: "check_disks", failureCode: "disks_changed" });
    const by = { workflowId: id, actor: "ann", role: "admin", reason: "the disk was sold" } as const;
    const force = () => rig.services.inTx((tx) => applyForce(tx, kinds, by));
    now = unchanged;
    await force();
    const unseen = await driver.drive(id);
    expect(unseen, "a decision holds for the findings that the person saw").toMatchObject({
      failureCode: "erase_disproved",
    });
    now = [{ ...disk, sample: null, detail: "broken" }];
    await driver.verb(id, "resume");
    expect((await driver.drive(id)).failureMessage).toContain("none of the 1 blocks");
    now = [];
    await driver.verb(id, "resume");
    expect(await driver.drive(id)).toMatchObject({ failureCode: "disks_changed" });
    await force();
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(await overrides()).toMatchObject([{ source: "disk-erase", setBy: "operator:ann" }]);
    const rows = await rig.test.database.db
      .select()
      .from(sanitizationRecords)
      .where(eq(sanitizationRecords.nodeId, host.nodeId));
    const record = readRecord(rows[0]?.text ?? "");
    if (typeof record === "string") throw new Error(record);
    expect([rows.length, record.verdict]).toEqual([1, "not_clean"]);
    expect(record.reasons.map(({ code }) => code)).toEqual(["erase_disproved", "erase_waived"]);
    expect(record.release).toMatchObject({
      evidence: "none",
      waived_by: null,
      disks_waived_by: "ann",
      disk_findings: [expect.stringContaining("S-1")],
    });
  });

  it("are not compared if the agents are too old, unless they are updated: a person forces it, and the record says so", async () => {
    const host = await hostInService(rig, 2, "disks-2");
    const kinds = workflowsOf(rig.services);
    const { db, inTx } = rig.test.database;
    const refuse = (task: Task) =>
      db
        .update(tasks)
        .set({
          state: "failed",
          errorCode: "order_rejected_unsupported_task",
          errorMessage: "This agent has no task type node.sample_disks.",
          epoch: task.epoch + 1,
          attempts: 1,
          finishedAt: sql`clock_timestamp()`,
        })
        .where(eq(tasks.id, task.id));
    const answer = async (task: Task): Promise<unknown> => {
      if (task.type === "node.sample_disks") await refuse(task);
      return resultOnCleanHost(task);
    };
    const driver = new Driver(rig.test, kinds, (one) => playReimagedAgent(rig, one, host.machine.systemId, answer));
    const { id } = await startReimage(rig, host, { erase: "secure" });
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({
      stage: "check_disks",
      failureCode: "agent_outdated",
      status: "failed_manual_intervention",
      nextAction: expect.stringContaining("Update the agent"),
    });
    expect(await driver.story(id)).toContain(
      "No block is compared after the deploy. The agent of disks-2 is older than the hub",
    );
    await driver.verb(id, "resume");
    expect(await driver.drive(id), "the agent is still old").toMatchObject({ failureCode: "agent_outdated" });
    await inTx((tx) => applyForce(tx, kinds, { workflowId: id, actor: "ann", role: "admin", reason: "no update" }));
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(await driver.story(id)).toContain("ann decided to continue without a comparison");
    expect(await listHealthOverrides(db, [host.nodeId])).toEqual([]);
    const [row] = await db.select().from(sanitizationRecords).where(eq(sanitizationRecords.nodeId, host.nodeId));
    const record = readRecord(row?.text ?? "");
    if (typeof record === "string") throw new Error(record);
    expect(record.tasks.map(({ type }) => type)).not.toContain("node.sample_disks");
    expect(record.claims.join()).toContain("the agent did not read the disks");
    expect(record.not_covered.join()).toContain("No block of a disk was compared");
  });
});
