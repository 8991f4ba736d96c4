/** Tests stored SSH keys and key groups of tenants: who may change them, allocations that name them, and how accounts follow their changes. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { orderDueKeys } from "../../../hub/allocations/sync-keys.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { allocations, auditLogs, tasks } from "../../../hub/db/schema/index.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { AllocationId, type NodeId, SiteId, TaskId } from "../../../shared/ids.ts";
import { addSchedulableNode, endTask, SSH_KEY } from "../../support/allocatable-node.ts";
import { type Answer, type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { countersign } from "../../support/countersign.ts";
import { quietLog } from "../../support/log.ts";
import { sshKeyOf } from "../../support/tenant-orders.ts";
import { until } from "../../support/until.ts";

const ADMIN = "/api/v1/admin";

describe("stored SSH keys", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let otherSite: SiteId;
  let skuId: string;
  let tenant = "";
  let made = 0;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    [siteId, skuId] = [SiteId.parse(seeded.siteId), seeded.skuId];
    otherSite = SiteId.parse((await api.ask("POST", `${ADMIN}/maas-sites`, siteBody("dc2"))).body.id);
  });
  afterAll(() => api?.close());
  beforeEach(() => {
    made += 1;
    tenant = `tenant-${made}`;
  });

  const inTx: ApiHarness["database"]["database"]["inTx"] = (fn) => api.database.database.inTx(fn);
  const sweep = () => sweepAllocations({ ...api.database.database, log: quietLog, countersign });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const post = (path: string, body: object, headers = {}): Promise<Answer> =>
    api.ask("POST", `${ADMIN}${path}`, body, headers);
  async function key(letter: string, more: object = {}): Promise<string> {
    const answer = await post("/ssh-keys", { name: letter, tenant, public_key: sshKeyOf(letter), ...more });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(201);
    return answer.body.id;
  }
  async function group(name: string, key_ids: readonly string[], more: object = {}): Promise<string> {
    const answer = await post("/ssh-key-groups", { name, tenant, key_ids, ...more });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(201);
    return answer.body.id;
  }
  async function change(id: string, body: object, headers = {}): Promise<Answer> {
    const path = `${ADMIN}/ssh-key-groups/${id}`;
    const etag = (await api.ask("GET", path)).headers.get("etag") ?? "";
    return api.ask("PATCH", path, body, { "if-match": etag, ...headers });
  }
  const groupNow = async (id: string) => (await api.ask("GET", `${ADMIN}/ssh-key-groups/${id}`)).body;
  async function addNode(site: SiteId = siteId): Promise<NodeId> {
    made += 1;
    return inTx((tx) => addSchedulableNode(tx, { siteId: site, hostname: `k${made}`, sku: skuId }));
  }
  const allocate = async (named: object, nodeId?: NodeId): Promise<Answer> =>
    post("/allocations", { node_id: nodeId ?? (await addNode()), tenant, login_user: "alice", ...named });
  const read = async (id: string) => (await api.ask("GET", `${ADMIN}/allocations/${id}`)).body;
  const keysOf = async (taskId: string): Promise<readonly string[]> => {
    const [task] = await api.database.database.db
      .select()
      .from(tasks)
      .where(eq(tasks.id, TaskId.parse(taskId)));
    return (task?.input as { ssh_keys: string[] } | undefined)?.ssh_keys ?? [];
  };
  const keysTask = async (id: string): Promise<string | null> => {
    const [row] = await api.database.database.db
      .select()
      .from(allocations)
      .where(eq(allocations.id, AllocationId.parse(id)));
    return row?.keysTaskId ?? null;
  };
  async function end(taskId: string | null, ending: Parameters<typeof endTask>[2] = {}): Promise<void> {
    await inTx((tx) => endTask(tx, TaskId.parse(taskId), ending));
    await sweep();
  }
  /** Makes an active allocation that names what `named` says. */
  async function active(named: object): Promise<{ readonly id: string; readonly nodeId: NodeId }> {
    const nodeId = await addNode();
    const answer = await allocate(named, nodeId);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
    await end(answer.body.grant_task_id);
    return { id: answer.body.id, nodeId };
  }

  it("are shown by their fingerprint, and only the answer about one key contains the key", async () => {
    const answer = await post("/ssh-keys", { name: "ada", tenant, public_key: SSH_KEY });
    const fingerprint = "SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA";
    expect(answer.body).toMatchObject({ name: "ada", tenant, type: "ssh-ed25519", fingerprint, public_key: SSH_KEY });
    const { items } = (await api.ask("GET", `${ADMIN}/ssh-keys?tenant=${tenant}`)).body;
    expect(items).toMatchObject([{ id: answer.body.id, fingerprint, site_ids: null }]);
    const audited = await api.database.database.db.select({ details: auditLogs.details }).from(auditLogs);
    expect(JSON.stringify(audited)).toContain(fingerprint);
    expect(JSON.stringify([items, audited])).not.toContain("AAAA");
  });

  it("have a name and a fingerprint that no other key of the tenant has", async () => {
    await key("A");
    const twice = (body: object) => post("/ssh-keys", { name: "B", tenant, public_key: sshKeyOf("B"), ...body });
    expect((await twice({ name: "A" })).problem).toMatchObject({ code: "name_taken", errors: [{ pointer: "/name" }] });
    expect((await twice({ public_key: sshKeyOf("A").replace("A@example", "her laptop") })).problem).toMatchObject({
      ...{ code: "name_taken", errors: [{ pointer: "/public_key" }] },
    });
    expect((await twice({ name: "A", public_key: sshKeyOf("A"), tenant: `${tenant} of the same` })).status).toBe(201);
    const id = await key("C");
    const etag = (await api.ask("GET", `${ADMIN}/ssh-keys/${id}`)).headers.get("etag") ?? "";
    const rename = (name: string) => api.ask("PATCH", `${ADMIN}/ssh-keys/${id}`, { name }, { "if-match": etag });
    expect((await rename("A")).problem.code).toBe("name_taken");
    expect((await rename("D")).body).toMatchObject({ id, name: "D" });
    expect((await rename("E")).problem.code).toBe("precondition_failed");
  });

  it("are never private keys, and a refusal does not repeat what it refuses", async () => {
    const secret = "b3BlbnNzaC1rZXktdjEAAAAAsecret";
    const text = `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n-----END OPENSSH PRIVATE KEY-----\n`;
    const refused = await post("/ssh-keys", { name: "oops", tenant, public_key: text });
    expect(refused.problem).toMatchObject({ code: "validation_failed", errors: [{ pointer: "/public_key" }] });
    expect(refused.problem.errors?.[0]?.message).toContain("is a private key");
    expect(JSON.stringify(refused.problem)).not.toContain(secret);
  });

  it("stand for the keys of an account, by themselves and by groups, each key once", async () => {
    const [a, b, c] = [await key("A"), await key("B"), await key("C")];
    const both = await group("both", [a, b, a]);
    const answer = await allocate({ ssh_key_ids: [b, c], ssh_key_group_ids: [both] });
    expect(answer.body).toMatchObject({
      ...{ ssh_key_ids: [b, c], ssh_key_group_ids: [both], key_sync: { status: "syncing" } },
      ssh_keys: [sshKeyOf("A"), sshKeyOf("B"), sshKeyOf("C")],
    });
    expect(await keysOf(answer.body.grant_task_id)).toEqual(answer.body.ssh_keys);
    expect(await groupNow(both)).toMatchObject({ key_ids: [a, b], status: "syncing", allocations: 1 });
    await end(answer.body.grant_task_id);
    expect(await groupNow(both)).toMatchObject({
      ...{ status: "synced", status_reason: null, sites: [{ site_id: siteId, status: "synced" }] },
    });
    expect((await allocate({ ssh_keys: [SSH_KEY] })).body).toMatchObject({ key_sync: null, ssh_key_ids: [] });
  });

  it("find the allocations whose accounts follow them", async () => {
    const [a, b, c] = [await key("A"), await key("B"), await key("C")];
    const [team, other] = [await group("team", [a, b]), await group("other", [a], { site_ids: [siteId] })];
    const own = (await allocate({ ssh_key_ids: [a] })).body.id;
    const byTeam = (await allocate({ ssh_key_group_ids: [team] })).body.id;
    const byBoth = (await allocate({ ssh_key_ids: [c], ssh_key_group_ids: [other] })).body.id;
    const listed = async (query: string): Promise<string[]> =>
      (await api.ask("GET", `${ADMIN}/allocations?${query}`)).body.items.map(({ id }: { id: string }) => id);
    expect(await listed(`ssh_key_id=${a}`)).toEqual([byBoth, byTeam, own]);
    expect(await listed(`ssh_key_id=${b}`)).toEqual([byTeam]);
    expect(await listed(`ssh_key_group_id=${other}`)).toEqual([byBoth]);
    // At a site that the group no longer has, its keys leave the accounts.
    expect((await change(other, { site_ids: [otherSite] })).status).toBe(200);
    expect(await listed(`ssh_key_id=${a}`)).toEqual([byTeam, own]);
    expect(await listed(`ssh_key_group_id=${other}`)).toEqual([byBoth]);
    const { db } = api.database.database;
    await db.execute(sql`update allocations set status = 'ended', ended_at = now() where id = ${byTeam}`);
    await db.execute(sql`update allocations set status = 'ending' where id = ${byBoth}`);
    expect(await listed(`ssh_key_id=${a}`)).toEqual([own]);
    expect(await listed(`ssh_key_group_id=${other}`)).toEqual([]);
  });

  it("are refused for an account if they are of another tenant, of another site, none, or given twice", async () => {
    const [own, there] = [await key("A"), await key("B", { site_ids: [otherSite] })];
    const [empty, far] = [await group("empty", []), await group("far", [there], { site_ids: [otherSite] })];
    const { id: foreign } = (await post("/ssh-keys", { name: "A", tenant: `not ${tenant}`, public_key: SSH_KEY })).body;
    const codes: unknown[] = [];
    for (const named of [
      { ssh_key_ids: [foreign] },
      { ssh_key_ids: [own, randomUUID()] },
      { ssh_key_ids: [there] },
      { ssh_key_group_ids: [far] },
      { ssh_key_group_ids: [empty] },
      { ssh_key_ids: [own], ssh_keys: [SSH_KEY] },
      {},
    ]) {
      const { problem } = await allocate(named);
      codes.push([problem.code, problem.errors?.[0]?.pointer]);
    }
    expect(codes).toEqual([
      ["reference_unknown", "/ssh_key_ids/0"],
      ["reference_unknown", "/ssh_key_ids/1"],
      ["reference_unknown", "/ssh_key_ids/0"],
      ["reference_unknown", "/ssh_key_group_ids/0"],
      ["conflict", undefined],
      ["validation_failed", "/ssh_keys"],
      ["validation_failed", "/ssh_keys"],
    ]);
    expect((await post("/ssh-key-groups", { name: "g", tenant, key_ids: [foreign] })).problem.code).toBe(
      "reference_unknown",
    );
    expect((await post("/ssh-key-groups", { name: "g", tenant, key_ids: [there] })).problem.code).toBe(
      "reference_unknown",
    );
    expect((await allocate({ ssh_key_group_ids: [far] }, await addNode(otherSite))).status).toBe(202);
  });

  it("reach the accounts of live allocations when a group gets or loses a key", async () => {
    const [a, b] = [await key("A"), await key("B")];
    const team = await group("team", [a]);
    const { id } = await active({ ssh_key_group_ids: [team] });
    expect((await change(team, { key_ids: [a, b] })).body).toMatchObject({ status: "syncing" });
    await sweep();
    const added = await keysTask(id);
    expect(await keysOf(added ?? "")).toEqual([sshKeyOf("A"), sshKeyOf("B")]);
    expect(await read(id)).toMatchObject({ status: "active", key_sync: { status: "syncing" } });
    await end(added);
    expect(await read(id)).toMatchObject({ status: "active", grant_task_id: added, key_sync: { status: "synced" } });
    expect(await groupNow(team)).toMatchObject({ status: "synced", allocations: 1 });
    expect((await api.ask("DELETE", `${ADMIN}/ssh-keys/${a}`)).status).toBe(204);
    expect(await groupNow(team)).toMatchObject({ key_ids: [b], status: "syncing" });
    await sweep();
    await end(await keysTask(id));
    expect(await read(id)).toMatchObject({ ssh_keys: [sshKeyOf("B")], key_sync: { status: "synced", reason: null } });
  });

  it("leave nobody without a key: such a change is refused, and changes nothing", async () => {
    const [a, b] = [await key("A"), await key("B")];
    const [team, spare] = [await group("team", [a]), await group("spare", [b])];
    const { id } = await active({ ssh_key_group_ids: [team, spare] });
    expect((await change(spare, { key_ids: [] })).status).toBe(200);
    for (const refused of [
      await change(team, { key_ids: [] }),
      await change(team, { site_ids: [otherSite] }),
      await api.ask("DELETE", `${ADMIN}/ssh-keys/${a}`),
      await api.ask("DELETE", `${ADMIN}/ssh-key-groups/${team}`),
    ])
      expect(refused.problem).toMatchObject({ code: "conflict", context: { allocation_id: id } });
    expect(await groupNow(team)).toMatchObject({ key_ids: [a], site_ids: null });
    expect((await api.ask("DELETE", `${ADMIN}/ssh-key-groups/${spare}`)).status).toBe(204);
    expect((await read(id)).ssh_key_group_ids).toEqual([team]);
    await post(`/allocations/${id}/release`, { reason: "a test" });
    expect((await api.ask("DELETE", `${ADMIN}/ssh-key-groups/${team}`)).status).toBe(204);
  });

  it.each(["ssh-keys", "ssh-key-groups"])("stay while an allocation names nothing else: %s", async (kind) => {
    const a = await key("A");
    const named = kind === "ssh-keys" ? a : await group("team", [a]);
    const { id } = await active(kind === "ssh-keys" ? { ssh_key_ids: [a] } : { ssh_key_group_ids: [named] });
    for (const path of [`/ssh-keys/${a}`, `/${kind}/${named}`])
      expect((await api.ask("DELETE", `${ADMIN}${path}`)).problem).toMatchObject({
        ...{ code: "conflict", context: { allocation_id: id } },
      });
    const found = await read(id);
    expect([...found.ssh_key_ids, ...found.ssh_key_group_ids]).toEqual([named]);
    expect(found).toMatchObject({ ssh_keys: [sshKeyOf("A")], key_sync: { status: "synced" } });
  });

  it("are ordered again if a group changes back while an order of its first change is under way", async () => {
    const [a, b] = [await key("A"), await key("B")];
    const team = await group("team", [a]);
    const { id } = await active({ ssh_key_group_ids: [team] });
    await change(team, { key_ids: [a, b] });
    const { back } = await inTx(async (tx) => {
      expect(await orderDueKeys(tx, AllocationId.parse(id))).toBe(1);
      const back = change(team, { key_ids: [a] });
      await until("the change waits for the order", async () => {
        const { rows } = await api.database.database.db.execute(
          sql`select from pg_locks where not granted and locktype in ('transactionid', 'tuple', 'advisory')`,
        );
        return rows.length > 0 ? true : undefined;
      });
      return { back };
    });
    expect((await back).status).toBe(200);
    const late = await keysTask(id);
    expect(await keysOf(late ?? "")).toEqual([sshKeyOf("A"), sshKeyOf("B")]);
    await end(late);
    await sweep();
    await end(await keysTask(id));
    expect(await read(id)).toMatchObject({ ssh_keys: [sshKeyOf("A")], key_sync: { status: "synced" } });
  });

  it("are ordered again five minutes after the agent could not change them", async () => {
    const [a, b] = [await key("A"), await key("B")];
    const team = await group("team", [a]);
    const { id } = await active({ ssh_key_group_ids: [team] });
    await change(team, { key_ids: [b] });
    await sweep();
    const failed = await keysTask(id);
    const ending = {
      state: "failed",
      result: null,
      errorCode: "keys_failed",
      errorMessage: "the disk is full",
    } as const;
    await end(failed, ending);
    const shown = await read(id);
    expect(shown).toMatchObject({ status: "active", key_sync: { status: "error" } });
    expect(shown.next_action).toContain("the disk is full");
    expect(await groupNow(team)).toMatchObject({ status: "error", status_reason: expect.stringContaining("full") });
    await sweep();
    expect(await keysTask(id)).toBe(failed);
    await api.database.database.db
      .update(tasks)
      .set({ finishedAt: sql`now() - interval '5 minutes'` })
      .where(eq(tasks.id, TaskId.parse(failed)));
    await sweep();
    const again = await keysTask(id);
    expect(again).not.toBe(failed);
    await end(again);
    expect(await read(id)).toMatchObject({ next_action: null, key_sync: { status: "synced" } });
  });

  it("wait for a host that is out of service, and end with the allocation", async () => {
    const [a, b] = [await key("A"), await key("B")];
    const team = await group("team", [a]);
    const { id, nodeId } = await active({ ssh_key_group_ids: [team] });
    await inTx((tx) => moveNode(tx, nodeId, { from: "active", to: "offline", owner: "heartbeat" }, "silent"));
    await change(team, { key_ids: [b] });
    await sweep();
    expect(await keysTask(id)).toBeNull();
    expect((await groupNow(team)).status_reason).toContain("it is offline");
    await inTx((tx) => moveNode(tx, nodeId, { from: "offline", to: "active", owner: "heartbeat" }, "back"));
    await sweep();
    const ordered = await keysTask(id);
    expect((await post(`/allocations/${id}/release`, { reason: "a test" })).status).toBe(202);
    const [task] = await api.database.database.db
      .select()
      .from(tasks)
      .where(eq(tasks.id, TaskId.parse(ordered)));
    expect(task?.state).toBe("cancelled");
    expect(await groupNow(team)).toMatchObject({ status: "syncing", allocations: 1 });
  });

  it("are those of the moment when the account is granted again", async () => {
    const [a, b] = [await key("A"), await key("B")];
    const team = await group("team", [a]);
    const answer = await allocate({ ssh_key_group_ids: [team] });
    await end(answer.body.grant_task_id, { state: "failed", result: null, errorCode: "account_exists" });
    expect(await groupNow(team)).toMatchObject({ status: "error" });
    await change(team, { key_ids: [b] });
    expect((await read(answer.body.id)).next_action).toContain("a key that was removed since may still be");
    const again = await post(`/allocations/${answer.body.id}/grant`, { reason: "a test" });
    expect(again.body).toMatchObject({ ssh_keys: [sshKeyOf("B")], status: "granting" });
    await end(again.body.grant_task_id);
    expect(await keysTask(answer.body.id)).toBeNull();
    expect(await groupNow(team)).toMatchObject({ status: "synced" });
  });

  it("are changed only by who reaches all their sites, and read only by their tenant", async () => {
    const operator = bearer(await apiToken(api.database, { name: `op-${made}`, role: "operator", sites: [siteId] }));
    const [whole, there] = [await key("A"), await key("B", { site_ids: [otherSite] })];
    const mine = await post(
      "/ssh-keys",
      { name: "C", tenant, public_key: sshKeyOf("C"), site_ids: [siteId] },
      operator,
    );
    expect(mine.status).toBe(201);
    expect((await post("/ssh-keys", { name: "D", tenant, public_key: sshKeyOf("D") }, operator)).status).toBe(403);
    const shown = await api.ask("GET", `${ADMIN}/ssh-keys?tenant=${tenant}`, undefined, operator);
    expect(shown.body.items.map(({ id }: { id: string }) => id)).toEqual([mine.body.id]);
    for (const twin of [
      { name: "B", public_key: sshKeyOf("E") },
      { name: "E", public_key: sshKeyOf("A") },
    ]) {
      const { problem } = await post("/ssh-keys", { ...twin, tenant, site_ids: [siteId] }, operator);
      expect(problem).toMatchObject({ code: "name_taken", errors: [{ message: "is taken" }] });
      expect(JSON.stringify(problem)).not.toMatch(new RegExp(`${whole}|${there}`));
    }
    for (const id of [whole, there])
      expect((await api.ask("DELETE", `${ADMIN}/ssh-keys/${id}`, undefined, operator)).status).toBe(404);
    const team = await group("team", [mine.body.id], { site_ids: [siteId] });
    expect((await change(team, { site_ids: [otherSite] }, operator)).status).toBe(404);
    expect((await change(team, { description: "of dc1" }, operator)).body).toMatchObject({ description: "of dc1" });
    const reader = bearer(await apiToken(api.database, { name: `t-${made}`, role: "tenant", tenant }));
    const stranger = bearer(await apiToken(api.database, { name: `s-${made}`, role: "tenant", tenant: "zeta" }));
    expect((await api.ask("GET", `${ADMIN}/ssh-keys`, undefined, reader)).body.items).toHaveLength(3);
    expect((await api.ask("GET", `${ADMIN}/ssh-key-groups/${team}`, undefined, reader)).status).toBe(200);
    expect((await api.ask("GET", `${ADMIN}/ssh-keys`, undefined, stranger)).body.items).toEqual([]);
    expect((await api.ask("GET", `${ADMIN}/ssh-key-groups/${team}`, undefined, stranger)).status).toBe(404);
    expect((await api.ask("DELETE", `${ADMIN}/ssh-key-groups/${team}`, undefined, reader)).status).toBe(403);
  });
});
