/** Tests how allocations end: by releases, planned ends and lost hosts, and while hubs are killed (lifecycle 5.9). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { type Database, openDatabase } from "../../../hub/db/client.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { recordMachineReleased } from "../../../hub/db/queries/decommissions.ts";
import {
  allocations,
  domainEvents,
  maasSiteProfiles,
  nodeBaselines,
  tasks,
  workflows,
} from "../../../hub/db/schema/index.ts";
import { removeHealthOverride, setHealthOverride } from "../../../hub/node/health-override.ts";
import { deleteNode } from "../../../hub/node/lifecycle.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import type { AllocationId, NodeId, TaskId, WorkflowId } from "../../../shared/ids.ts";
import { ProfileId, SiteId } from "../../../shared/ids.ts";
import { addSchedulableNode, endTask, onboardedWith, SSH_KEY, writeBaseline } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { countersign } from "../../support/countersign.ts";
import { doneAudits } from "../../support/done-audits.ts";
import { quietLog } from "../../support/log.ts";

const PATH = "/api/v1/admin/allocations";
const REASON = { reason: "the order is over" };

interface Allocated {
  readonly id: AllocationId;
  readonly nodeId: NodeId;
  readonly task: TaskId;
}

let api: ApiHarness;
let hubs: readonly Database[];
let seeded: Awaited<ReturnType<typeof seedApi>>;
let siteId: SiteId;
let made = 0;
beforeAll(async () => {
  api = await startApi();
  seeded = await seedApi(api);
  siteId = SiteId.parse(seeded.siteId);
  const { url } = api.database;
  hubs = ["a", "b"].map((name) => openDatabase({ url, poolSize: 4, applicationName: `hub-${name}`, log: quietLog }));
});
afterAll(async () => {
  for (const hub of hubs ?? []) await hub.close();
  await api?.close();
});

const inTx: Database["inTx"] = (fn) => api.database.database.inTx(fn);
const db = () => api.database.database.db;
const sweep = (hub: Pick<Database, "db" | "inTx"> = api.database.database) =>
  sweepAllocations({ ...hub, log: quietLog, countersign });
const read = async (id: string) => (await api.ask("GET", `${PATH}/${id}`)).body;
const verb = (id: string, what: string) => api.ask("POST", `${PATH}/${id}/${what}`, REASON);
const ofNode = (id: string, what: string, body: object = REASON) =>
  api.ask("POST", `/api/v1/admin/nodes/${id}/${what}`, body);
const decommission = async (id: string) => (await api.ask("GET", `/api/v1/admin/decommissions/${id}`)).body;
const cancel = (id: string) => api.ask("POST", `/api/v1/admin/decommissions/${id}/cancel`, REASON);
const eventsOf = async (id: string) =>
  (
    await db()
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `allocations/${id}`))
      .orderBy(domainEvents.seq)
  ).map(({ type }) => type.split(".").at(-1));

/** Allocates a new node, on whose host the tenant's account exists unless `granted` is false. */
async function allocate({ granted = true, more = {} }: { granted?: boolean; more?: object } = {}): Promise<Allocated> {
  made += 1;
  const nodeId = await inTx((tx) => addSchedulableNode(tx, { siteId, hostname: `e${made}`, sku: "s" }));
  const body = { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY], ...more };
  const answer = await api.ask("POST", PATH, body);
  expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
  const { id, grant_task_id: task } = answer.body;
  if (granted) {
    await inTx((tx) => endTask(tx, task));
    await sweep();
  }
  return { id, nodeId, task };
}
const pass = (id: AllocationId) =>
  db().update(allocations).set({ endsAt: sql`now() - interval '1 second'` }).where(eq(allocations.id, id));
const failWorkflow = (id: string) =>
  db()
    .update(workflows)
    .set({ status: "failed_manual_intervention", startedAt: sql`now()`, completedAt: sql`now()`, wakeAt: null })
    .where(eq(workflows.id, id as WorkflowId));
async function over(id: string): Promise<void> {
  await db().execute(
    sql`update workflows set status = 'cancelled', completed_at = now(), wake_at = null where id = ${id}`,
  );
  await db().execute(sql`delete from workflow_subjects where workflow_id = ${id}`);
}

describe("a release", () => {
  it("begins one operation that clears the node, and is audited", async () => {
    const { id, nodeId } = await allocate();
    const released = await verb(id, "release");
    expect(released, JSON.stringify(released.problem)).toMatchObject({
      status: 202,
      body: { status: "ending", end_reason: REASON.reason, end_forced: false },
    });
    const { decommission_id: turnover } = released.body;
    expect(await decommission(turnover)).toMatchObject({ node_id: nodeId, reason: REASON.reason, status: "pending" });
    const again = await verb(id, "release");
    expect(again.problem).toMatchObject({
      status: 409,
      code: "operation_exists",
      context: { decommission_id: turnover },
    });
    const [audit] = (await doneAudits(db())).filter(({ target }) => target === `allocations/${id}`).slice(-1);
    expect(audit).toMatchObject({
      action: "releaseAllocation",
      reason: REASON.reason,
      details: { prior: { status: "active" }, expected: { status: "ended" }, forced: false },
    });
    expect(await eventsOf(id)).toEqual(["started", "active", "ending"]);
  });

  it("cancels the task of an account that is still to be made", async () => {
    const { id, task } = await allocate({ granted: false });
    expect((await verb(id, "release")).body.status).toBe("ending");
    expect((await db().select().from(tasks).where(eq(tasks.id, task)))[0]?.state).toBe("cancelled");
    await sweep();
    expect((await read(id)).status).toBe("ending");
  });

  it("is possible again after its operation was cancelled, and the node takes no other work in between", async () => {
    const { id, nodeId } = await allocate();
    const first = (await verb(id, "release")).body.decommission_id;
    expect((await cancel(first)).body.status).toBe("cancelled");
    await sweep();
    expect(await read(id)).toMatchObject({ status: "ending", decommission_id: first });
    const node = (await api.ask("GET", `/api/v1/admin/nodes/${nodeId}`)).body;
    expect(node.unschedulable_reasons).toContain("allocated to acme");
    const second = (await verb(id, "release")).body.decommission_id;
    expect(second).not.toBe(first);
    expect((await decommission(second)).status).toBe("pending");
  });

  it("is refused while another operation holds the node; a forced release cancels that operation", async () => {
    const { id, nodeId } = await allocate();
    // The drain holds the node since before the allocation, as a hub of an older version may have left it.
    const holder = randomUUID();
    await inTx(async (tx) => {
      const about = { kind: "drain", siteId, stage: "disable_node", input: { node_id: nodeId } };
      await tx.insert(workflows).values({ id: holder as WorkflowId, ...about, status: "pending" });
      await tx.execute(
        sql`insert into workflow_subjects (subject, workflow_id) values (${`node:${nodeId}`}, ${holder})`,
      );
    });
    await failWorkflow(holder);
    const refused = await verb(id, "release");
    expect(refused.problem).toMatchObject({
      status: 409,
      code: "operation_exists",
      context: { decommission_id: holder },
    });
    expect((await read(id)).status).toBe("active");
    const forced = await verb(id, "force-release");
    expect(forced, JSON.stringify(forced.problem)).toMatchObject({
      status: 202,
      body: { status: "ending", end_forced: true },
    });
    const [was] = await db()
      .select()
      .from(workflows)
      .where(eq(workflows.id, holder as WorkflowId));
    expect(was?.status).toBe("compensating");
    await sweep();
    expect((await read(id)).decommission_id).toBeNull();
    await over(holder);
    await sweep();
    const turnover = (await read(id)).decommission_id;
    expect(await decommission(turnover)).toMatchObject({ node_id: nodeId, status: "pending" });
    const audited = (await doneAudits(db())).filter(({ target }) => target === `allocations/${id}`);
    expect(audited.at(-1)).toMatchObject({
      action: "forceReleaseAllocation",
      reason: REASON.reason,
      details: { forced: true },
    });
  });

  it("waits for the node if an operation holds it, and is begun by the sweep afterwards", async () => {
    const { id, nodeId } = await allocate();
    const drain = await ofNode(nodeId, "drain", { ...REASON, force_release_allocation: true });
    expect(drain.status, JSON.stringify(drain.problem)).toBe(202);
    const told = await db()
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `allocations/${id}`));
    expect(told.find(({ type }) => type === "node.allocation.ending")?.data).toMatchObject({
      decommission_id: drain.body.decommission_id,
    });
    await sweep();
    const waiting = await read(id);
    expect(waiting).toMatchObject({ status: "ending", end_forced: true, decommission_id: null });
    expect(waiting.next_action).toContain("no operation holds it");
    await cancel(drain.body.decommission_id);
    await sweep();
    const { decommission_id: turnover } = await read(id);
    expect(await decommission(turnover)).toMatchObject({ node_id: nodeId, reason: REASON.reason });
  });
});

describe("an operation on an allocated node", () => {
  it("is refused with the allocation's name, unless a drain takes the node from the tenant", async () => {
    const { id, nodeId } = await allocate();
    const refused = await ofNode(nodeId, "drain");
    expect(refused.problem).toMatchObject({ status: 409, code: "allocation_exists", context: { allocation_id: id } });
    expect(refused.problem.detail).toContain(`allocated to acme (allocation ${id})`);
    expect(refused.problem.detail).toContain("force_release_allocation");
    expect((await read(id)).status).toBe("active");
  });

  it("is refused if it is a storage cleanup, also while the allocation is ending", async () => {
    const { id, nodeId } = await allocate();
    const context = { allocation_id: id };
    const refused = await ofNode(nodeId, "storage-cleanup");
    expect(refused.problem).toMatchObject({ status: 409, code: "allocation_exists", context });
    await cancel((await verb(id, "release")).body.decommission_id);
    const again = await ofNode(nodeId, "storage-cleanup");
    expect(again.problem).toMatchObject({ status: 409, code: "allocation_exists", context });
    expect(again.problem.detail).toContain("does not remove the tenant's account");
    expect((await read(id)).status).toBe("ending");
  });
});

it("a storage cleanup is refused on a node without a baseline, which it could only quarantine", async () => {
  const nodeId = await inTx((tx) => addSchedulableNode(tx, { siteId, hostname: "bare", sku: "s" }));
  await db().update(nodeBaselines).set({ snapshot: null, takenAt: null }).where(eq(nodeBaselines.nodeId, nodeId));
  const refused = await ofNode(nodeId, "storage-cleanup");
  expect(refused.problem).toMatchObject({ status: 409, code: "conflict", context: { node_id: nodeId } });
  expect(refused.problem.detail).toContain("no residue baseline");
  await db().delete(nodeBaselines).where(eq(nodeBaselines.nodeId, nodeId));
  expect((await ofNode(nodeId, "storage-cleanup")).problem.detail).toContain("take-node-baseline");
  await inTx((tx) => writeBaseline(tx, nodeId));
  const disks = { ...REASON, purge_disks: ["S-1"] };
  const weka = await ofNode(nodeId, "storage-cleanup", { ...disks, scope: "weka" });
  expect([weka.status, JSON.stringify(weka.problem)]).toEqual([400, expect.stringContaining("purge_disks")]);
  const begun = await ofNode(nodeId, "storage-cleanup", { ...disks, scope: "local" });
  expect(begun.status).toBe(202);
  const [workflow] = await db().select().from(workflows).where(eq(workflows.id, begun.body.decommission_id));
  expect(workflow?.input).toMatchObject({ storage_cleanup: "local", purge_disks: ["S-1"] });
});

describe("a planned end", () => {
  it("is in the future, and begins the turnover when it has passed", async () => {
    const ends_at = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = await allocate({ more: { ends_at } });
    await sweep();
    expect(await read(id)).toMatchObject({ status: "active", ends_at });
    await pass(id);
    await sweep();
    expect(await read(id)).toMatchObject({ status: "ending", end_reason: "Its planned end has passed" });
    expect((await read(id)).decommission_id).not.toBeNull();
  });

  it("also ends an allocation whose account was never made", async () => {
    const { id } = await allocate({ granted: false });
    await pass(id);
    await sweep();
    expect((await read(id)).status).toBe("ending");
  });

  it("waits for a person after a restore of the database, because the host may have another tenant since", async () => {
    const { id, nodeId } = await allocate();
    const healthOverride = { nodeId, source: "restore", target: null, reason: "restored", setBy: "restore" };
    await inTx((tx) => setHealthOverride(tx, healthOverride));
    await pass(id);
    await sweep();
    expect(await read(id)).toMatchObject({ status: "active", decommission_id: null });
    await inTx((tx) => removeHealthOverride(tx, nodeId, "restore", { by: "ann", reason: "the tenant is the same" }));
    await sweep();
    expect((await read(id)).status).toBe("ending");
  });

  it("begins one turnover, however many hubs sweep at once", async () => {
    const all = [await allocate(), await allocate(), await allocate()];
    for (const { id } of all) await pass(id);
    await Promise.all([...hubs, ...hubs].map((hub) => sweep(hub)));
    for (const { id, nodeId } of all) {
      expect(await eventsOf(id)).toEqual(["started", "active", "ending"]);
      const { rows } = await db().execute(sql`select 1 from node_decommissions where node_id = ${nodeId}`);
      expect(rows).toHaveLength(1);
    }
  });
});

describe("an allocation that the hub cannot end", () => {
  it("says why, holds up no other allocation, and ends when the cause is gone", async () => {
    const profileId = ProfileId.parse(seeded.profileId);
    const all = [await allocate(), await allocate(), await allocate()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const [stuck, other, last] = all;
    if (stuck === undefined || other === undefined || last === undefined) throw new Error("no allocations");
    // The hub refuses a reimage of a node without a machine.
    await db().update(maasSiteProfiles).set({ turnoverMode: "reimage" }).where(eq(maasSiteProfiles.id, profileId));
    const about = { nodeId: stuck.nodeId, siteId, profileId, hostname: "stuck" };
    await inTx((tx) => onboardedWith(tx, about));
    for (const { id } of all) await pass(id);
    await sweepAllocations({ ...api.database.database, log: quietLog, countersign, atOnce: 1 });
    expect((await read(other.id)).status).toBe("ending");
    expect((await read(last.id)).status).toBe("ending");
    const waiting = await read(stuck.id);
    expect(waiting, "the tenant's time is over").toMatchObject({ status: "ending", decommission_id: null });
    expect(waiting.next_action).toMatch(/cannot: No machine can be deployed again.*bound to no machine/);
    const drain = (await ofNode(stuck.nodeId, "drain")).body.decommission_id;
    await sweep();
    expect((await read(stuck.id)).next_action, "a reason of an earlier sweep").toContain("no operation holds it");
    await cancel(drain);
    await sweep();
    expect((await read(stuck.id)).next_action).toContain("cannot: No machine");
    await db().update(maasSiteProfiles).set({ turnoverMode: "soft_reset" }).where(eq(maasSiteProfiles.id, profileId));
    await sweep();
    const ending = await read(stuck.id);
    expect(ending.status).toBe("ending");
    expect(ending.next_action).toContain(`Look at decommission ${ending.decommission_id}`);
  });
});

describe("an allocation whose host is gone", () => {
  it("has ended when MAAS has released the host", async () => {
    const { id } = await allocate();
    const turnover = (await verb(id, "release")).body.decommission_id as WorkflowId;
    await inTx((tx) => recordMachineReleased(tx, turnover, 0));
    await sweep();
    expect((await read(id)).status, "the operation that clears the node is not over").toBe("ending");
    await over(turnover);
    await sweep();
    const ended = await read(id);
    expect(ended).toMatchObject({ status: "ended", end_reason: REASON.reason });
    expect(ended.ended_at).not.toBeNull();
    expect(await eventsOf(id)).toEqual(["started", "active", "ending", "ended"]);
    expect((await verb(id, "release")).problem).toMatchObject({ status: 409, code: "conflict" });
  });

  it("has ended when its node was removed, and the node's history keeps it", async () => {
    const { id, nodeId } = await allocate();
    const drain = (await verb(id, "release")).body.decommission_id;
    await inTx(async (tx) => {
      await moveNode(tx, nodeId, { from: "active", to: "draining", owner: "admin_api", operationId: drain }, "gone");
      await moveNode(tx, nodeId, { from: "draining", to: "retired", owner: "drain" }, "gone");
      await deleteNode(tx, nodeId, drain, "gone");
    });
    await over(drain);
    await sweep();
    expect(await read(id)).toMatchObject({ status: "ended" });
    expect((await api.ask("GET", `${PATH}?node_id=${nodeId}`)).body.items).toHaveLength(1);
  });
});

/** The allocation sweep of another hub continues from what the killed hub has committed to the database. */
it("ends as if nothing had happened, whichever commit of a sweep a hub did not live to see", async () => {
  for (let kept = 0; kept < 6; kept += 1) {
    const fresh = await allocate({ granted: false });
    const [due, gone] = [await allocate(), await allocate()];
    await inTx((tx) => endTask(tx, fresh.task));
    await pass(due.id);
    const released = (await verb(gone.id, "release")).body.decommission_id as WorkflowId;
    await inTx((tx) => recordMachineReleased(tx, released, 0));
    await over(released);
    let left = kept;
    const [hub] = hubs;
    if (hub === undefined) throw new Error("no hub");
    const dying: Pick<Database, "db" | "inTx"> = {
      db: hub.db,
      inTx: (fn, options) =>
        hub.inTx(async (tx) => {
          const result = await fn(tx);
          if (left === 0) throw new Error("killed before the commit");
          left -= 1;
          return result;
        }, options),
    };
    if (kept < 5) await expect(sweep(dying)).rejects.toThrow("killed before the commit");
    await sweep(hubs[1]);
    expect((await read(fresh.id)).status).toBe("active");
    expect((await read(due.id)).status).toBe("ending");
    expect((await read(gone.id)).status).toBe("ended");
    expect(await eventsOf(fresh.id)).toEqual(["started", "active"]);
    expect(await eventsOf(gone.id)).toEqual(["started", "active", "ending", "ended"]);
  }
});
