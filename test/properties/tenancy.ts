import { expect } from "vitest";
import { createAllocation } from "../../hub/allocations/create-allocation.ts";
import { releaseAllocation } from "../../hub/allocations/end-allocation.ts";
import { sweepAllocations } from "../../hub/allocations/sweep.ts";
import { eq } from "../../hub/db/orm.ts";
import { readAllocation } from "../../hub/db/queries/allocations.ts";
import { sanitizationRecords, type Task } from "../../hub/db/schema/index.ts";
import type { Countersign } from "../../hub/node/store-record.ts";
import { applyForce } from "../../hub/workflows/decommission/force-decommission.ts";
import { type DecommissionRequest, startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { AllocationCreate } from "../../shared/api/allocations.ts";
import type { AllocationId, NodeId, TaskId, WorkflowId } from "../../shared/ids.ts";
import { readRecord, type SanitizationRecord } from "../../shared/sanitization-record.ts";
import { judge } from "../../shared/sanitization-verdict.ts";
import { resultOnCleanHost } from "../support/agent-results.ts";
import { endTask, makeSchedulable, SSH_KEY } from "../support/allocatable-node.ts";
import { quietLog } from "../support/log.ts";
import type { OnboardingRig } from "../support/onboarding-rig.ts";
import { type DeployedHost, hostInService, playReimagedAgent } from "../support/release-world.ts";
import { certify } from "../support/signing-agent.ts";
import { Driver, plainly } from "./drive.ts";

/** A host with a tenant, and what a test does with both. */
export class Tenancy {
  readonly rig: OnboardingRig;
  readonly host: DeployedHost;
  readonly id: AllocationId;
  readonly driver: Driver;
  /** True while the host's agent does not answer. */
  isAway = false;
  /** The result of each task of the host's agent. */
  resultOf: (task: Task) => unknown = resultOnCleanHost;

  constructor(rig: OnboardingRig, host: DeployedHost, id: AllocationId) {
    this.rig = rig;
    this.host = host;
    this.id = id;
    this.driver = new Driver(rig.test, workflowsOf(rig.services), async (workflowId) => {
      if (!this.isAway) await playReimagedAgent(rig, workflowId, host.machine.systemId, (task) => this.resultOf(task));
    });
  }

  /** Puts the box of the given number into service, and gives it to a tenant whose account exists unless `granted` is false. */
  static async begin(rig: OnboardingRig, box: number, granted: boolean): Promise<Tenancy> {
    const { inTx } = rig.services;
    const host = await hostInService(rig, box, `tenant-${box}`);
    await inTx(async (tx) => {
      await makeSchedulable(tx, host.nodeId);
      await certify(tx, host.nodeId);
    });
    const request = { node_id: host.nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
    const row = await inTx((tx) => createAllocation(tx, AllocationCreate.parse(request), "ann"));
    if (granted) {
      await inTx((tx) => endTask(tx, row.grantTaskId as TaskId, { startedAt: new Date(), epoch: 1 }));
      await sweepAllocations({ ...rig.services, log: quietLog });
    }
    return new Tenancy(rig, host, row.id);
  }

  /** Runs the hub's sweep of allocations once. */
  async sweep(countersign: Countersign = this.rig.services.countersign): Promise<void> {
    await sweepAllocations({ ...this.rig.services, log: quietLog, countersign });
  }
  get nodeId(): NodeId {
    return this.host.nodeId;
  }
  async now() {
    const row = await readAllocation(this.rig.services.db, this.id);
    if (row === null) throw new Error("the allocation is gone");
    return row;
  }
  async release(forced = false): Promise<WorkflowId> {
    const by = { reason: "over", actor: "ann", role: "admin", requestId: "r", forced };
    await this.rig.services.inTx((tx) => releaseAllocation(tx, this.driver.kinds, this.id, by));
    return (await this.now()).decommissionId as WorkflowId;
  }
  async start(request: DecommissionRequest): Promise<WorkflowId> {
    return (await this.rig.services.inTx((tx) => startDecommission(tx, this.nodeId, request, "ann"))).decommission_id;
  }
  async drive(id: WorkflowId, until?: string): Promise<string> {
    const row = await this.driver.drive(id, (now) => (now.stage === until ? null : plainly));
    return row.status;
  }
  async cancel(id: WorkflowId): Promise<void> {
    await this.driver.verb(id, "cancel");
    expect(await this.drive(id), await this.driver.story(id)).toBe("cancelled");
    await this.sweep();
  }
  async force(workflowId: WorkflowId): Promise<void> {
    const why = { actor: "ann", role: "admin", reason: "it burnt down" };
    await this.rig.services.inTx((tx) => applyForce(tx, this.driver.kinds, { workflowId, ...why }));
  }
  /** Takes the node from the tenant without any cleaning, as an operator does with a broken host. */
  async drain(): Promise<void> {
    const drain = { mode: "drain", reason: "broken", force: true, deadline_seconds: 0, agent_wait_seconds: 0 } as const;
    const id = await this.start({ ...drain, force_release_allocation: true });
    expect(await this.drive(id), await this.driver.story(id)).toBe("completed");
  }
  async run(request: DecommissionRequest): Promise<WorkflowId> {
    const id = await this.start(request);
    expect(await this.drive(id), await this.driver.story(id)).toBe("completed");
    await this.sweep();
    return id;
  }
  readonly remove = () => this.run({ mode: "remove", reason: "scrap", agent_wait_seconds: 0 });
  readonly reimage = () => this.start({ mode: "reimage", reason: "next", erase: "quick", agent_wait_seconds: 0 });
  async records(): Promise<SanitizationRecord[]> {
    const rows = await this.rig.services.db
      .select()
      .from(sanitizationRecords)
      .where(eq(sanitizationRecords.nodeId, this.nodeId))
      .orderBy(sanitizationRecords.sequence);
    return rows.map(({ text }) => {
      const record = readRecord(text);
      if (typeof record === "string") throw new Error(record);
      expect(judge(record).verdict, "a reader comes to the same verdict").toBe(record.verdict);
      return record;
    });
  }
  /** The only record of the tenancy, which has ended. */
  async only(): Promise<SanitizationRecord> {
    expect(await this.now()).toMatchObject({ status: "ended" });
    const [record, ...others] = await this.records();
    if (record === undefined) throw new Error("there is no record");
    expect(others).toEqual([]);
    expect(record.allocation).toMatchObject({ id: this.id, tenant: "acme" });
    return record;
  }
}
