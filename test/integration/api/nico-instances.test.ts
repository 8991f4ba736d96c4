/** Tests SSH keys, key groups and new instances in NICo's form, as NICo's clients and NVIDIA's validation suite use them (decision R3). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { inArray } from "../../../hub/db/orm.ts";
import { nodes } from "../../../hub/db/schema/index.ts";
import { stableId } from "../../../hub/nico/stable-id.ts";
import { type NodeId, ProfileId, SiteId, TaskId } from "../../../shared/ids.ts";
import { addSchedulableNode, endTask, onboardedWith, SSH_KEY } from "../../support/allocatable-node.ts";
import { type Answer, type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { countersign } from "../../support/countersign.ts";
import { doneAudits } from "../../support/done-audits.ts";
import { quietLog } from "../../support/log.ts";
import { sshKeyOf } from "../../support/tenant-orders.ts";

const BASE = "/v2/org/acme/nico";
const ADMIN = "/api/v1/admin";

describe("keys and new instances in NICo's form", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let otherSite: SiteId;
  let profileId: ProfileId;
  let skuId: string;
  let made = 0;
  beforeAll(async () => {
    api = await startApi({ nicoOrg: "acme" });
    const seeded = await seedApi(api);
    [siteId, profileId, skuId] = [SiteId.parse(seeded.siteId), ProfileId.parse(seeded.profileId), seeded.skuId];
    otherSite = SiteId.parse((await api.ask("POST", `${ADMIN}/maas-sites`, siteBody("dc2"))).body.id);
  });
  afterAll(() => api?.close());

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const ask = (method: string, path: string, body?: object, headers = {}): Promise<Answer> =>
    api.ask(method, `${BASE}${path}`, body, headers);
  const nextName = (): string => {
    made += 1;
    return `n${made}`;
  };
  /** A machine that MAAS can install again, so that a tenant may have root on it. */
  async function addNode(): Promise<NodeId> {
    const hostname = nextName();
    return api.database.database.inTx(async (tx) => {
      const nodeId = await addSchedulableNode(tx, { siteId, hostname, sku: skuId });
      await onboardedWith(tx, { nodeId, siteId, profileId, hostname });
      return nodeId;
    });
  }
  async function addKey(publicKey: string): Promise<string> {
    const answer = await ask("POST", "/sshkey", { name: nextName(), publicKey });
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    return answer.body.id;
  }
  async function addGroup(sshKeyIds: readonly string[], siteIds?: readonly string[]): Promise<string> {
    const answer = await ask("POST", "/sshkeygroup", { name: nextName(), sshKeyIds, siteIds });
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    return answer.body.id;
  }

  it("store a key and a group of it, which is synced at its site, and delete both", async () => {
    const key = await ask("POST", "/sshkey", { name: "suite", publicKey: SSH_KEY });
    expect(key).toMatchObject({
      ...{ status: 201, body: { name: "suite", org: "acme", tenantId: stableId("tenant", "acme") } },
      ...{ body: { fingerprint: "ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA" } },
    });
    expect(JSON.stringify(key.body)).not.toContain("AAAA");
    const { id } = key.body;
    const group = await ask("POST", "/sshkeygroup", { name: "suite", sshKeyIds: [id], siteIds: [siteId] });
    expect(group).toMatchObject({ status: 201, body: { description: null, status: "Synced", sshKeys: [{ id }] } });
    expect(group.body.siteAssociations).toMatchObject([{ site: { id: siteId }, status: "Synced" }]);
    expect((await ask("GET", `/sshkeygroup/${group.body.id}`)).body).toEqual(group.body);
    const idsAt = async (site: string) =>
      (await ask("GET", `/sshkeygroup?siteId=${site}`)).body.map((one: { id: string }) => one.id);
    expect(await idsAt(siteId)).toContain(group.body.id);
    expect(await idsAt(otherSite)).not.toContain(group.body.id);
    for (const path of [`/sshkeygroup/${group.body.id}`, `/sshkey/${id}`]) {
      expect(await ask("DELETE", path)).toMatchObject({ status: 202, body: { message: expect.any(String) } });
      expect((await ask("GET", path)).status).toBe(404);
    }
    const audited = (await doneAudits(api.database.database.db)).map(({ action }) => action);
    expect(audited).toEqual(expect.arrayContaining(["createSshKey", "createSshKeyGroup", "deleteSshKeyGroup"]));
  });

  it("change the name of a key, and a group only of the version that the client has read", async () => {
    const [a, b] = [await addKey(sshKeyOf("A")), await addKey(sshKeyOf("B"))];
    expect((await ask("PATCH", `/sshkey/${a}`, { name: "renamed" })).body).toMatchObject({ id: a, name: "renamed" });
    const group = await addGroup([a], [siteId]);
    const { version } = (await ask("GET", `/sshkeygroup/${group}`)).body;
    const change = (body: object) => ask("PATCH", `/sshkeygroup/${group}`, body);
    expect((await change({ sshKeyIds: [b] })).body.data).toHaveProperty("version");
    const changed = await change({ sshKeyIds: [b], description: "of the night", version });
    expect(changed.body).toMatchObject({ description: "of the night", sshKeys: [{ id: b }] });
    expect(changed.body.version).not.toBe(version);
    expect((await change({ sshKeyIds: [a], version })).status).toBe(412);
    expect((await change({ siteIds: [], version: changed.body.version })).body.data).toHaveProperty("siteIds");
  });

  it("name the wrong fields of a refused request as NICo does", async () => {
    const twice = { name: "again", publicKey: sshKeyOf("C") };
    await ask("POST", "/sshkey", twice);
    const answers = [
      await ask("POST", "/sshkey", { ...twice, name: "other" }),
      await ask("POST", "/sshkey", { name: "other", publicKey: "-----BEGIN OPENSSH PRIVATE KEY-----" }),
      await ask("POST", "/sshkey", { name: "other", publicKey: SSH_KEY, sshKeyGroupId: randomUUID() }),
      await ask("POST", "/sshkeygroup", { name: "other", sshKeyIds: [randomUUID()] }),
    ];
    expect(answers.map(({ status, body }) => [status, Object.keys(body.data)])).toEqual([
      [409, ["publicKey"]],
      [400, ["publicKey"]],
      [400, ["sshKeyGroupId"]],
      [422, ["sshKeyIds/0"]],
    ]);
  });

  it("are of the sites of a limited caller, who sees and changes no others", async () => {
    const operator = bearer(await apiToken(api.database, { name: nextName(), role: "operator", sites: [siteId] }));
    const own = await ask("POST", "/sshkey", { name: nextName(), publicKey: sshKeyOf("D") }, operator);
    expect(own.status).toBe(201);
    const mine = await ask("POST", "/sshkeygroup", { name: nextName(), sshKeyIds: [own.body.id] }, operator);
    expect(mine.body.siteAssociations).toMatchObject([{ site: { id: siteId } }]);
    const away = { name: nextName(), siteIds: [otherSite] };
    expect((await ask("POST", "/sshkeygroup", away, operator)).status).toBe(404);
    const [foreign, whole] = [await addGroup([], [otherSite]), await addKey(sshKeyOf("E"))];
    for (const path of [`/sshkeygroup/${foreign}`, `/sshkey/${whole}`])
      for (const method of ["GET", "DELETE"]) expect((await ask(method, path, undefined, operator)).status).toBe(404);
    const listed = (await ask("GET", "/sshkey", undefined, operator)).body.map((one: { id: string }) => one.id);
    expect(listed).toEqual([own.body.id]);
    const mixed = await addGroup([own.body.id, whole], [siteId]);
    const { body } = await ask("GET", `/sshkeygroup/${mixed}`, undefined, operator);
    expect(body.sshKeys.map((one: { id: string }) => one.id)).toEqual([own.body.id]);
    expect((await ask("GET", `/sshkeygroup/${mixed}`)).body.sshKeys).toHaveLength(2);
    expect((await ask("POST", "/sshkey", { name: "x", publicKey: SSH_KEY }, bearer(api.viewer))).status).toBe(403);
  });

  it("give the machine that a request names to the tenant of its key groups", async () => {
    const [machineId, group] = [await addNode(), await addGroup([await addKey(sshKeyOf("F"))])];
    const [vpc] = (await ask("GET", `/vpc?siteId=${siteId}`)).body;
    expect(vpc).toMatchObject({ siteId, name: "acme" });
    const body = { name: "gpu-1", tenantId: vpc.tenantId, vpcId: vpc.id, machineId, sshKeyGroupIds: [group] };
    const wishes = { autoNetwork: true, interfaces: [], allowUnhealthyMachine: false, labels: { team: "blue" } };
    const answer = await ask("POST", "/instance", { ...body, ...wishes, description: "for the night run" });
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    expect(answer.body).toMatchObject({
      ...{
        name: "gpu-1",
        description: "for the night run",
        machineId,
        vpcId: vpc.id,
        siteId,
        labels: { team: "blue" },
      },
      ...{ sshKeyGroupIds: [group], tenantId: vpc.tenantId, status: "Provisioning", loginUser: "tenant" },
      instanceTypeId: stableId("sku", skuId),
    });
    const { id } = answer.body;
    const own = (await api.ask("GET", `${ADMIN}/allocations/${id}`)).body;
    expect(own).toMatchObject({ root: true, tenant: "acme", name: "gpu-1", ssh_keys: [sshKeyOf("F")] });
    expect((await ask("GET", `/sshkeygroup/${group}`)).body).toMatchObject({
      ...{ status: "Syncing", siteAssociations: [{ site: { id: siteId }, status: "Syncing" }] },
    });
    await api.database.database.inTx((tx) => endTask(tx, TaskId.parse(own.grant_task_id)));
    await sweepAllocations({ ...api.database.database, log: quietLog, countersign });
    expect((await ask("GET", `/sshkeygroup/${group}`)).body.status).toBe("Synced");
    expect((await ask("GET", `/instance/${id}`)).body).toMatchObject({ name: "gpu-1", sshKeyGroupIds: [group] });
    expect((await ask("POST", "/instance", body)).status).toBe(409);
  });

  it("give an unhealthy machine that is named, to a caller with the right to", async () => {
    const [machineId, group] = [await addNode(), await addGroup([await addKey(sshKeyOf("J"))])];
    const alerts = [{ id: "FanSlow", target: "fan3", message: "slow", classifications: ["PreventAllocations"] }];
    const reported = await ask("PUT", `/machine/${machineId}/health-report`, { source: "fans", mode: "Merge", alerts });
    expect(reported.status, JSON.stringify(reported.body)).toBeLessThan(300);
    const body = { name: "gpu-u", tenantId: stableId("tenant", "acme"), machineId, sshKeyGroupIds: [group] };
    expect((await ask("POST", "/instance", body)).status).toBe(409);
    const wish = { ...body, allowUnhealthyMachine: true };
    const operator = bearer(await apiToken(api.database, { name: nextName(), role: "operator", sites: [siteId] }));
    expect((await ask("POST", "/instance", wish, operator)).status).toBe(403);
    const given = await ask("POST", "/instance", wish);
    expect(given.status, JSON.stringify(given.body)).toBe(201);
    const own = (await api.ask("GET", `${ADMIN}/allocations/${given.body.id}`)).body;
    expect(own).toMatchObject({ allow_unhealthy_machine: true, unhealthy_because: ["fans"] });
  });

  it("give a free machine of an instance type, at the site of the network or of siteId", async () => {
    const nodes = new Set([await addNode(), await addNode()]);
    const group = await addGroup([await addKey(sshKeyOf("G"))]);
    const [vpc] = (await ask("GET", `/vpc?siteId=${siteId}`)).body;
    const wanted = {
      name: "gpu",
      tenantId: vpc.tenantId,
      instanceTypeId: stableId("sku", skuId),
      sshKeyGroupIds: [group],
    };
    const got = [
      (await ask("POST", "/instance", { ...wanted, vpcId: vpc.id })).body.machineId,
      (await ask("POST", "/instance", { ...wanted, siteId, loginUser: "ada", root: false })).body.machineId,
    ];
    expect(new Set(got)).toEqual(nodes);
    expect((await ask("POST", "/instance", { ...wanted, siteId })).status).toBe(409);
  });

  it("give several free machines of an instance type at once, all or none, by default of one rack", async () => {
    const machines = [await addNode(), await addNode(), await addNode()];
    const { db } = api.database.database;
    await db
      .update(nodes)
      .set({ rack: "batch" })
      .where(inArray(nodes.id, machines.slice(0, 2)));
    const group = await addGroup([await addKey(sshKeyOf("L"))]);
    const [vpc] = (await ask("GET", `/vpc?siteId=${siteId}`)).body;
    const wanted = {
      ...{ namePrefix: "worker", count: 2, tenantId: vpc.tenantId, vpcId: vpc.id, labels: { job: "7" } },
      ...{ instanceTypeId: stableId("sku", skuId), sshKeyGroupIds: [group] },
    };
    const given = await ask("POST", "/instance/batch", wanted);
    expect(given.status, JSON.stringify(given.body)).toBe(201);
    expect(new Set(given.body.map((one: { machineId: string }) => one.machineId))).toEqual(
      new Set(machines.slice(0, 2)),
    );
    for (const one of given.body)
      expect(one).toMatchObject({ name: expect.stringMatching(/^worker-[a-z2-9]{6}$/), labels: { job: "7" } });
    const refused = await ask("POST", "/instance/batch", { ...wanted, topologyOptimized: false });
    expect(refused.status).toBe(409);
    expect(JSON.stringify(refused.body)).toContain("1 free nodes");
    const last = await addNode();
    expect((await ask("POST", "/instance/batch", wanted)).status, "no rack has two").toBe(409);
    const spread = await ask("POST", "/instance/batch", { ...wanted, topologyOptimized: false });
    expect(spread.body.map((one: { machineId: string }) => one.machineId).sort()).toEqual([machines[2], last].sort());
    for (const [more, field] of [
      [{ count: 1 }, "count"],
      [{ count: 19 }, "count"],
      [{ namePrefix: "w" }, "namePrefix"],
      [{ instanceTypeId: undefined }, "instanceTypeId"],
      [{ userData: "#!/bin/sh" }, "userData"],
      [{ machineId: last }, "machineId"],
      [{ allowUnhealthyMachine: true }, "allowUnhealthyMachine"],
    ] as const) {
      const wrong = await ask("POST", "/instance/batch", { ...wanted, ...more });
      expect([wrong.status, JSON.stringify(wrong.body)]).toEqual([400, expect.stringContaining(field)]);
    }
  });

  it("list instance types with the machines that are used and those that could be, for each caller's sites", async () => {
    const id = stableId("sku", skuId);
    const typesOf = async (query: string, headers = {}) =>
      (await ask("GET", `/instance/type${query}`, undefined, headers)).body as {
        id: string;
        allocationStats: object;
      }[];
    const statsOf = async (query = "") =>
      (await typesOf(`?includeAllocationStats=true${query}`)).find((one) => one.id === id)?.allocationStats as {
        assigned: number;
        used: number;
        unusedUsable: number;
      };
    const group = await addGroup([await addKey(sshKeyOf("K"))]);
    const before = await statsOf();
    const machineId = await addNode();
    const { assigned, used, unusedUsable } = before;
    expect(await statsOf()).toMatchObject({ assigned: assigned + 1, used, unusedUsable: unusedUsable + 1 });
    const order = { name: "gpu-t", tenantId: stableId("tenant", "acme"), machineId, sshKeyGroupIds: [group] };
    expect((await ask("POST", "/instance", order)).status).toBe(201);
    const after = {
      assigned: assigned + 1,
      total: assigned + 1,
      used: used + 1,
      unusedUsable,
      maxAllocatable: unusedUsable,
    };
    expect(await statsOf()).toEqual({ ...after, unused: assigned - used });
    expect(await statsOf(`&siteId=${siteId}`)).toMatchObject(after);
    expect(await typesOf(`?siteId=${otherSite}`)).toEqual([]);

    const type = await ask("GET", `/instance/type/${id}`);
    expect(type.body).toMatchObject({
      id,
      name: skuId,
      siteId,
      status: "Ready",
      machineCapabilities: [{ type: "GPU" }],
    });
    expect(type.body.allocationStats).toBeUndefined();
    const machines = await ask("GET", `/instance/type/${id}/machine?pageSize=100`);
    expect(machines.body).toHaveLength(assigned + 1);
    expect(machines.body).toContainEqual(expect.objectContaining({ machineId, instanceTypeId: id }));
    const away = bearer(await apiToken(api.database, { name: nextName(), role: "operator", sites: [otherSite] }));
    expect(await typesOf("", away)).toEqual([]);
    for (const path of [`/instance/type/${id}`, `/instance/type/${id}/machine`])
      expect((await ask("GET", path, undefined, away)).status).toBe(404);
    expect((await ask("GET", `/instance/type/${randomUUID()}`)).status).toBe(404);
    expect((await ask("GET", "/instance/type/gpu")).status).toBe(400);
  });

  it("refuse an instance that Muster cannot make or whose parts do not fit, and say which", async () => {
    const [machineId, group] = [await addNode(), await addGroup([await addKey(sshKeyOf("H"))])];
    const tenantId = stableId("tenant", "acme");
    const good = { name: "gpu", tenantId, machineId, sshKeyGroupIds: [group] };
    const typeOnly = { ...good, machineId: null, instanceTypeId: stableId("sku", skuId) };
    const before = await api.counts();
    const refusals: [object, string][] = [
      [{ ...good, userData: "#cloud-config" }, "userData"],
      [{ ...good, operatingSystemId: randomUUID() }, "operatingSystemId"],
      [{ ...typeOnly, siteId, allowUnhealthyMachine: true }, "allowUnhealthyMachine"],
      [{ ...good, sshKeyGroupIds: [] }, "sshKeyGroupIds"],
      [{ ...good, tenantId: randomUUID() }, "sshKeyGroupIds"],
      [{ ...good, vpcId: randomUUID() }, "vpcId"],
      [{ ...good, siteId: otherSite }, "siteId"],
      [{ ...good, instanceTypeId: typeOnly.instanceTypeId }, "machineId"],
      [{ ...good, machineId: null }, "machineId"],
      [typeOnly, "vpcId"],
      [{ ...typeOnly, vpcId: randomUUID() }, "vpcId"],
      [{ ...typeOnly, siteId, instanceTypeId: randomUUID() }, "instanceTypeId"],
      [{ ...good, loginUser: "root" }, "loginUser"],
    ];
    for (const [body, field] of refusals) {
      const answer = await ask("POST", "/instance", body);
      expect([field, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([field, 400, [field]]);
    }
    const operator = bearer(await apiToken(api.database, { name: nextName(), role: "operator", sites: [otherSite] }));
    expect((await ask("POST", "/instance", good, operator)).status).toBe(404);
    expect((await ask("POST", "/instance", good, bearer(api.viewer))).status).toBe(403);
    const after = await api.counts();
    expect(after["allocations"]).toEqual(before["allocations"]);
  });
});
