/** What the tests of reinstalls do with a tenancy. */
import { expect } from "vitest";
import { and, desc, eq } from "../../hub/db/orm.ts";
import { readAllocation } from "../../hub/db/queries/allocations.ts";
import { nodes, type Task, tasks } from "../../hub/db/schema/index.ts";
import { isOpen, toInstances } from "../../hub/http/routes/instance-rows.ts";
import { reinstallInstance } from "../../hub/power/reinstall-instance.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import type { Tenancy } from "./tenancy.ts";

const ANN = { name: "ann", tenant: null };

export async function orderReinstall({ rig, id }: Tenancy, by = ANN): Promise<WorkflowId> {
  const request = { reason: "a new image", by };
  return (await rig.services.inTx((tx) => reinstallInstance(tx, id, request))).created.decommission_id;
}

/** The message of the hub's refusal, or `accepted`. */
export const refusalOf = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => "accepted",
    (error: Error) => error.message,
  );

export const nodeOf = async ({ rig, nodeId }: Tenancy) =>
  (await rig.services.db.select().from(nodes).where(eq(nodes.id, nodeId)))[0];

/** The instance as its tenant sees it. */
export async function shown({ rig, id }: Tenancy) {
  const row = await readAllocation(rig.services.db, id);
  if (row === null || !isOpen(row)) throw new Error("no open allocation");
  return (await toInstances(rig.services.db, [row]))[0];
}

/** The orders for the tenant's account, the newest first. */
export const grantsOf = ({ rig, nodeId }: Tenancy): Promise<Task[]> =>
  rig.services.db
    .select()
    .from(tasks)
    .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "allocation.grant_user")))
    .orderBy(desc(tasks.createdAt));

/** Ends the turnover that the sweep has begun, and expects the one clean record of a cleaning by another system. */
export async function turnsOver(tenancy: Tenancy): Promise<void> {
  await tenancy.sweep();
  const turnover = (await tenancy.now()).decommissionId as WorkflowId;
  expect(await tenancy.drive(turnover), await tenancy.driver.story(turnover)).toBe("completed");
  await tenancy.sweep();
  const record = await tenancy.only();
  expect(record).toMatchObject({ operation: { decommission_id: turnover, mode: "reimage" }, signed_by_agent: true });
  expect(record.trust).toMatch(/^reimaged/);
  expect(record.release).toMatchObject({ erase: "secure", evidence: "reported_by_maas" });
}

/** Has the simulated MAAS fail the next deploys of the host. */
export const failTheDeploy = ({ rig, host }: Tenancy): void => {
  rig.maas.sim.region.state.plans[host.machine.systemId] = {
    commission: [],
    deploy: ["install_failure", "install_failure", "install_failure"],
  };
};
