/** Tests the routes in NICo's form as NICo's clients use them (decision R3): lists, pages, errors, reach, and what a turnover leaves. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { allocations, nodeDecommissions, nodes, workflows } from "../../../hub/db/schema/index.ts";
import { ENDPOINTS } from "../../../hub/http/nico/facade.ts";
import { cordonForOperator, uncordonForOperator } from "../../../hub/node/cordon.ts";
import { type NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { RecordVerdict } from "../../../shared/sanitization-record.ts";
import { addSchedulableNode, SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { doneAudits } from "../../support/done-audits.ts";
import { endCleaning } from "../../support/end-cleaning.ts";
import { addMachine } from "../../support/site-nodes.ts";

const BASE = "/v2/org/acme/nico";
type Machine = Record<string, unknown> & { id: string; status: string };

let api: ApiHarness;
let siteId: SiteId;
let skuId: string;
let made = 0;
beforeAll(async () => {
  api = await startApi({ nicoOrg: "acme" });
  const seeded = await seedApi(api);
  siteId = SiteId.parse(seeded.siteId);
  skuId = seeded.skuId;
});
afterAll(() => api?.close());

const inTx: ApiHarness["database"]["database"]["inTx"] = (fn) => api.database.database.inTx(fn);
const ask = (path: string, token?: string) =>
  api.ask("GET", `${BASE}${path}`, undefined, token === undefined ? {} : { authorization: `Bearer ${token}` });
const machine = async (id: string): Promise<Machine> => (await ask(`/machine/${id}`)).body as Machine;

async function add(site: SiteId = siteId): Promise<NodeId> {
  made += 1;
  const id = await inTx((tx) => addSchedulableNode(tx, { siteId: site, hostname: `n${made}`, sku: skuId }));
  await api.database.database.db.update(nodes).set({ rack: "r7" }).where(eq(nodes.id, id));
  return id;
}

async function allocate(nodeId: NodeId): Promise<string> {
  const body = { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
  const answer = await api.ask("POST", "/api/v1/admin/allocations", body);
  expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
  return answer.body.id;
}

/** Writes the turnover of an allocation that is over, with a record of its cleaning if `recorded`. */
async function turnOver(nodeId: NodeId, allocationId: string, verdict: RecordVerdict | null): Promise<void> {
  const operation = WorkflowId.parse(randomUUID());
  await inTx(async (tx) => {
    const ended = { status: "completed", stage: "enable_node", input: {}, completedAt: sql`now()` } as const;
    await tx.insert(workflows).values({ id: operation, kind: "soft_reset", siteId, ...ended });
    await tx.insert(nodeDecommissions).values({
      ...{ decommissionId: operation, nodeId, siteId, hostname: "n", mode: "soft_reset", reason: "a test" },
      ...{ priorStatus: "active", createdAt: sql`now() - interval '20 seconds'` },
    });
  });
  if (verdict !== null) await endCleaning(api.database.database.pool, nodeId, verdict);
  await inTx(async (tx) => {
    await tx
      .update(allocations)
      .set({
        ...{ decommissionId: operation, status: "ended", endReason: "over", endForced: false },
        ...{ createdAt: sql`now() - interval '1 minute'`, endedAt: sql`now() - interval '1 second'` },
      })
      .where(sql`id = ${allocationId}`);
    await tx.execute(
      sql`update node_events set occurred_at = occurred_at - interval '1 hour' where node_id = ${nodeId}`,
    );
  });
}

const statuses = async (id: string) =>
  (((await machine(id))["statusHistory"] ?? []) as Machine[]).map(({ status }) => status);

describe("the routes in NICo's form", () => {
  it("answer every read under both names of the API", async () => {
    const id = await add();
    const instance = await allocate(await add());
    const key = (await api.ask("POST", `${BASE}/sshkey`, { name: "of the reads", publicKey: SSH_KEY })).body.id;
    const group = (await api.ask("POST", `${BASE}/sshkeygroup`, { name: "of the reads" })).body.id;
    const type = (await ask("/instance/type")).body[0]?.id;
    const objects: Readonly<Record<string, string>> = {
      ...{ site: siteId, instance, sshkey: key, sshkeygroup: group },
      "instance/type": type,
    };
    for (const name of ["nico", "carbide"])
      for (const { method, path } of ENDPOINTS) {
        if (method !== "GET") continue;
        const [, first = "", second = ""] = path.split("/");
        const object = objects[`${first}/${second}`] ?? objects[first] ?? id;
        const answer = await api.ask("GET", `/v2/org/acme/${name}${path.replace("{id}", object)}?type=DPU`);
        expect({ path, status: answer.status }).toEqual({ path, status: 200 });
      }
  });

  it("refuse a request without a token, of another organization, and to a path that does not exist, in NICo's form", async () => {
    const limited = await apiToken(api.database, { name: "limited", role: "viewer", sites: [siteId] });
    const answers = [
      await ask("/machine", "wrong"),
      await api.ask("GET", "/v2/org/other/carbide/machine"),
      await ask("/machine/no-uuid"),
      await ask("/site/no-uuid"),
      await ask("/machine/no-uuid", limited),
      await ask(`/machine/${randomUUID()}`),
      await ask("/nothing"),
      await ask("/machine?pageSize=101"),
      await ask("/machine?pageNumber=0"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 403, 400, 400, 400, 404, 404, 400, 400]);
    for (const { body } of answers)
      expect(body).toEqual({ source: expect.any(String), message: expect.any(String), data: body.data });
    expect(answers[1]?.body.source).toBe("carbide");
    expect(answers[7]?.body.data).toEqual({ pageSize: "must be from 1 to 100" });
  });

  it("give pages by number and size in an order that does not change", async () => {
    for (let more = 0; more < 3; more += 1) await add();
    const all = await ask("/machine?pageSize=100");
    const ids = all.body.map(({ id }: Machine) => id);
    const parts: string[] = [];
    for (let page = 1; page <= Math.ceil(ids.length / 2); page += 1) {
      const part = await ask(`/machine?pageSize=2&pageNumber=${page}`);
      expect(JSON.parse(part.headers.get("x-pagination") ?? "")).toMatchObject({ pageNumber: page, total: ids.length });
      parts.push(...part.body.map(({ id }: Machine) => id));
    }
    expect(parts).toEqual(ids);
    expect((await ask("/machine?pageNumber=99")).body).toEqual([]);
  });

  it("show who uses a machine, a person's cordon, and what is unknown as null", async () => {
    const id = await add();
    expect(await machine(id)).toMatchObject({
      ...{ status: "Ready", isUsableByTenant: true, instanceId: null, tenantId: null, serialNumber: null },
      ...{ labels: { RackIdentifier: "r7" }, health: { source: "muster", alerts: [] }, machineCapabilities: [] },
    });
    await inTx((tx) => cordonForOperator(tx, id, "ann", "the fan is loud"));
    expect(await machine(id)).toMatchObject({ status: "Maintenance", maintenanceMessage: "the fan is loud" });
    await inTx((tx) => uncordonForOperator(tx, id, "ann", "quiet again"));
    const instanceId = await allocate(id);
    const used = await machine(id);
    expect(used).toMatchObject({ status: "InUse", instanceId, tenantId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect((await ask(`/instance/${instanceId}`)).body).toMatchObject({
      ...{ id: instanceId, machineId: id, tenantId: used["tenantId"], status: "Provisioning" },
    });
    expect(used["metadata"]).toBeUndefined();
    expect((await ask(`/machine/${id}?includeMetadata=true`)).body.metadata).toHaveProperty("dmiData");
  });

  it("show Reset between InUse and Ready only if a record says that the host is clean", async () => {
    const [proven, unproven, dirty] = [await add(), await add(), await add()];
    await turnOver(proven, await allocate(proven), "clean");
    await turnOver(unproven, await allocate(unproven), null);
    await turnOver(dirty, await allocate(dirty), "not_clean");
    expect(await statuses(proven)).toEqual(["Ready", "InUse", "Reset", "Ready"]);
    for (const id of [unproven, dirty]) expect(await statuses(id)).toEqual(["Ready", "InUse", "Error", "Ready"]);
    const own = await api.ask("GET", `/api/v1/admin/nodes/${proven}/status-history`);
    expect(own.body.entries.map(({ status }: Machine) => status)).toEqual(["Ready", "InUse", "Reset", "Ready"]);
    const history = await ask(`/machine/${proven}/status-history?pageSize=2`);
    expect(history.body.map(({ status }: Machine) => status)).toEqual(["Ready", "Reset"]);
    expect(history.body[1].message).toContain("sanitization record");
  });

  it("set, show and remove a health report by Muster's own rules, with the audit of Muster's own route", async () => {
    const id = await add();
    const path = `${BASE}/machine/${id}/health-report`;
    const report = {
      ...{ source: "fans", mode: "Merge" },
      alerts: [{ id: "FanSlow", target: "fan3", message: "Fan 3 is slow", classifications: ["PreventAllocations"] }],
    };
    const viewer = { authorization: `Bearer ${api.viewer}` };
    expect((await api.ask("PUT", path, report, viewer)).status).toBe(403);
    expect((await api.ask("PUT", path, { ...report, source: "restore" })).status).toBe(400);
    expect((await api.ask("PUT", path, report)).body).toMatchObject({ ...report, triggeredBy: "operator:admin" });
    const ill = await machine(id);
    expect(ill).toMatchObject({ status: "Error", isUsableByTenant: false });
    expect((ill["health"] as { alerts: object[] }).alerts).toMatchObject([{ id: "FanSlow", target: "fan3" }]);
    const audited = (await doneAudits(api.database.database.db)).filter(({ target }) => target === `nodes/${id}`);
    expect(audited.map(({ action }) => action)).toContain("setNodeHealthOverride");
    expect((await api.ask("DELETE", `${path}/fans`)).status).toBe(204);
    expect((await api.ask("DELETE", `${path}/fans`)).status).toBe(404);
    expect((await ask(`/machine/${id}/health-report`)).body).toEqual([]);
    expect((await machine(id)).status).toBe("Ready");
  });

  it("end an instance, and open a repair of its machine for the fault that the request names", async () => {
    const [healthy, faulty] = [await add(), await add()];
    const issue = { category: "Hardware", summary: "GPU 3 fell off the bus", details: "Xid 79" };
    const end = (id: string, body?: object) => api.ask("DELETE", `${BASE}/instance/${id}`, body);
    const instance = await allocate(faulty);
    const wrong = await end(instance, { machineHealthIssue: { ...issue, category: "Weather" } });
    expect(wrong).toMatchObject({ status: 400, body: { source: "nico" } });
    expect((await ask(`/instance/${instance}`)).body.status).toBe("Provisioning");
    expect(await end(instance, { machineHealthIssue: issue })).toMatchObject({
      ...{ status: 202, body: { message: expect.any(String) } },
    });
    expect((await end(await allocate(healthy))).status).toBe(202);
    expect((await ask(`/instance/${instance}`)).body.status).toBe("Terminating");
    const { body: repairs } = await api.ask("GET", "/api/v1/admin/repairs");
    expect(repairs.items).toMatchObject([{ node_id: faulty, issue }]);
    const alerts = (await machine(faulty))["health"] as { alerts: { id: string }[] };
    expect(alerts.alerts.map(({ id }) => id)).toContain("TenantReportedIssue");
  });

  it("change the labels of an instance, restart it, and switch the power of a machine with the consent of its tenant", async () => {
    const nodeId = await add();
    const [node] = await api.database.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
    await inTx((tx) => addMachine(tx, { siteId, hostname: node?.hostname ?? "", nodeId }, { status: 6 }));
    const id = await allocate(nodeId);
    const change = (body: object) => api.ask("PATCH", `${BASE}/instance/${id}`, body);
    expect((await change({ labels: { Name: "a" } })).body).toMatchObject({ id, labels: { Name: "a" } });
    expect((await change({ triggerReboot: true })).body).toMatchObject({ id, status: "Rebooting" });
    for (const wrong of [
      {},
      { triggerReboot: true, labels: {} },
      { triggerReboot: true, rebootWithCustomIpxe: true },
      { name: "x" },
    ])
      expect(await change(wrong), JSON.stringify(wrong)).toMatchObject({ status: 400, body: { source: "nico" } });
    expect((await machine(nodeId)).status).toBe("InUse");
    const power = (body: object) => api.ask("PATCH", `${BASE}/machine/${nodeId}/power`, body);
    const { pool } = api.database.database;
    expect((await power({ action: "Up" })).status).toBe(400);
    for (const [action, verb, immediate] of [
      ["On", "on", false],
      ["GracefulShutdown", "off", false],
      ["ForceOff", "off", true],
      ["GracefulRestart", "reboot", false],
      ["ForceRestart", "reboot", true],
      ["ACPowercycle", "cycle", false],
    ] as const) {
      await pool.query("delete from power_actions where node_id = $1", [nodeId]);
      expect((await power({ action })).status, "a tenant has the machine").toBe(409);
      expect((await power({ action, acknowledgeAttachedInstance: true })).status).toBe(202);
      const { rows } = await pool.query("select verb, immediate from power_actions where node_id = $1", [nodeId]);
      expect(rows).toEqual([{ verb, immediate }]);
    }
    expect((await power({ action: "On", acknowledgeAttachedInstance: true })).status, "one at a time").toBe(409);
  });

  it("begin and end the maintenance of a machine, and refuse what Muster cannot change", async () => {
    const id = await add();
    const change = (body: object) => api.ask("PATCH", `${BASE}/machine/${id}`, body);
    const on = { setMaintenanceMode: true, maintenanceMessage: "new fans" };
    expect((await change(on)).body).toMatchObject({ status: "Maintenance", maintenanceMessage: "new fans" });
    expect((await change({ setMaintenanceMode: false })).body).toMatchObject({
      status: "Ready",
      maintenanceMessage: null,
    });
    for (const wrong of [
      { setMaintenanceMode: true },
      { setMaintenanceMode: false, maintenanceMessage: "why so" },
      { labels: {} },
      { clearInstanceType: true },
      { onlineRepair: { enabled: false } },
      { ...on, labels: {} },
      { maintenanceMessage: "alone" },
    ])
      expect((await change(wrong)).status, JSON.stringify(wrong)).toBe(400);
  });

  it("show a caller only the sites and the tenant of the caller", async () => {
    const other = SiteId.parse((await api.ask("POST", "/api/v1/admin/maas-sites", siteBody("dc2"))).body.id);
    const [here, there] = [await add(), await add(other)];
    const instance = await allocate(there);
    const token = await apiToken(api.database, { name: "dc1-only", role: "viewer", sites: [siteId] });
    const ids = (await ask("/machine?pageSize=100", token)).body.map(({ id }: Machine) => id);
    expect(ids).toContain(here);
    expect(ids).not.toContain(there);
    expect((await ask(`/machine/${there}`, token)).status).toBe(404);
    expect((await ask("/site", token)).body.map(({ id }: Machine) => id)).toEqual([siteId]);
    const stranger = await apiToken(api.database, { name: "t", role: "tenant", tenant: "zeta" });
    expect((await ask("/instance", stranger)).body).toEqual([]);
    expect((await ask("/vpc", stranger)).body).toEqual([]);
    expect((await ask("/vpc?pageSize=100")).body.map((vpc: Machine) => vpc["siteId"])).toEqual(
      expect.arrayContaining([siteId, other]),
    );
    expect((await ask(`/instance/${instance}`, stranger)).status).toBe(404);
    expect((await ask("/machine", stranger)).status).toBe(403);
  });
});
