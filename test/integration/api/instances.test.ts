/** Instances: what a tenant sees of an allocation, computed on each read, and the history of a machine's statuses. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { allocations, nodeConditions, nodes, tasks } from "../../../hub/db/schema/index.ts";
import { AllocationId, type NodeId, SiteId, TaskId } from "../../../shared/ids.ts";
import { addSchedulableNode, endTask, SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { doneAudits } from "../../support/done-audits.ts";

const INSTANCES = "/api/v1/admin/instances";

let api: ApiHarness;
let siteId: SiteId;
let skuId: string;
beforeAll(async () => {
  api = await startApi();
  const seeded = await seedApi(api);
  siteId = SiteId.parse(seeded.siteId);
  skuId = seeded.skuId;
});
afterAll(() => api.close());

const db = () => api.database.database.db;
const inTx = <T>(fn: Parameters<typeof api.database.database.inTx<T>>[0]) => api.database.database.inTx(fn);

async function allocate() {
  const hostname = `i-${randomUUID().slice(0, 8)}`;
  const nodeId = await inTx((tx) => addSchedulableNode(tx, { siteId, hostname, sku: skuId }));
  const body = { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY], labels: { order: "4711" } };
  const made = await api.ask("POST", "/api/v1/admin/allocations", body);
  expect(made.status, JSON.stringify(made.problem)).toBe(202);
  const id = AllocationId.parse(made.body.id);
  return { id, nodeId, hostname, taskId: TaskId.parse(made.body.grant_task_id) };
}
const read = async (id: string) => (await api.ask("GET", `${INSTANCES}/${id}`)).body;
const statusOf = async (id: string) => (await read(id)).status;
const activate = async (id: AllocationId, taskId: TaskId) => {
  await inTx((tx) => endTask(tx, taskId));
  await db().update(allocations).set({ status: "active" }).where(eq(allocations.id, id));
};
const setNode = (nodeId: NodeId, status: "active" | "offline" | "enrolling") =>
  db().update(nodes).set({ status }).where(eq(nodes.id, nodeId));

it("follows the allocation, the node, its readiness and its repair, and is stored nowhere", async () => {
  const { id, nodeId, hostname, taskId } = await allocate();
  expect(await read(id)).toMatchObject({
    id,
    status: "Provisioning",
    hostname,
    tenant: "acme",
    labels: { order: "4711" },
    ssh_keys: [SSH_KEY],
    power_state: null,
  });
  await activate(id, taskId);
  expect(await statusOf(id)).toBe("Ready");
  await setNode(nodeId, "offline");
  expect(await read(id)).toMatchObject({ status: "Error", status_reason: "The host does not report" });
  await setNode(nodeId, "enrolling");
  expect(await statusOf(id)).toBe("Provisioning");
  await setNode(nodeId, "active");
  const override = { template: "RequestOnlineRepair", message: "GPU 3", reason: "ticket" };
  const path = `/api/v1/admin/nodes/${nodeId}/health-overrides`;
  const set = await api.ask("POST", path, override);
  expect(set.status, JSON.stringify(set.problem)).toBeLessThan(300);
  expect(await statusOf(id)).toBe("Repairing");
  await db().update(nodeConditions).set({ status: "False" }).where(eq(nodeConditions.nodeId, nodeId));
  expect(await statusOf(id)).toBe("Error");
});

it("lists open allocations alone, each with the status that reading it gives", async () => {
  const { id, taskId } = await allocate();
  await activate(id, taskId);
  const gone = await allocate();
  const ended = { status: "ended", endedAt: new Date() } as const;
  await db().update(allocations).set(ended).where(eq(allocations.id, gone.id));
  const { items } = (await api.ask("GET", `${INSTANCES}?limit=200&tenant=acme`)).body;
  const listed = new Map(items.map((one: { id: string; status: string }) => [one.id, one.status]));
  expect([listed.get(id), listed.has(gone.id)]).toEqual([await statusOf(id), false]);
  expect((await api.ask("GET", `${INSTANCES}/${gone.id}`)).status).toBe(404);
});

it("has a history that shows a tenancy, and no Reset without a sanitization record", async () => {
  const { id, nodeId, taskId } = await allocate();
  await activate(id, taskId);
  await db().update(allocations).set({ status: "ended", endedAt: new Date() }).where(eq(allocations.id, id));
  const history = (await api.ask("GET", `/api/v1/admin/nodes/${nodeId}/status-history`)).body;
  const statuses = history.entries.map((one: { status: string }) => one.status);
  expect(statuses.slice(-2)).toEqual(["InUse", "Ready"]);
  expect(statuses).not.toContain("Reset");
  expect(history.cut).toBe(false);
  expect(await db().select().from(tasks).where(eq(tasks.id, taskId))).toHaveLength(1);
});

it("gets other labels in place of all its labels, by who has seen the instance as it is", async () => {
  const { id } = await allocate();
  const seen = (await api.ask("GET", `${INSTANCES}/${id}`)).headers.get("etag") ?? "";
  const change = (labels: object, etag = seen) =>
    api.ask("PATCH", `${INSTANCES}/${id}`, { labels }, { "if-match": etag });
  expect((await change({ rack: "r7" })).body).toMatchObject({ id, labels: { rack: "r7" } });
  expect((await change({ rack: "r8" })).status, "changed since").toBe(412);
  expect((await change({ "no key!": "x" })).status).toBe(400);
  const audits = (await doneAudits(db())).filter(({ action }) => action === "updateInstance");
  expect(audits.at(-1)).toMatchObject({ target: `allocations/${id}` });
  const { rows } = await api.database.database.pool.query(
    "select type from domain_events where subject = $1 order by seq",
    [`allocations/${id}`],
  );
  expect(rows.map(({ type }) => type)).toEqual(["node.allocation.started", "node.allocation.changed"]);
});

it("whose host has no machine in MAAS has no power to switch", async () => {
  const { id } = await allocate();
  const answer = await api.ask("POST", `${INSTANCES}/${id}/power-off`, { reason: "a test" });
  expect(answer).toMatchObject({ status: 409, problem: { detail: expect.stringContaining("no machine in MAAS") } });
  expect((await read(id)).power_action).toBeNull();
});
