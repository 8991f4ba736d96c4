import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import {
  allocations,
  auditLogs,
  domainEvents,
  nodeEvents,
  nodeHealthOverrides,
  nodes,
  tasks,
} from "../../../hub/db/schema/index.ts";
import { cordonForOperator, uncordonForOperator } from "../../../hub/node/cordon.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { type NodeId, ProfileId, SiteId, TaskId } from "../../../shared/ids.ts";
import { addSchedulableNode, endTask, onboardedWith, SSH_KEY } from "../../support/allocatable-node.ts";
import { type Answer, type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { countersign } from "../../support/countersign.ts";
import { doneAudits } from "../../support/done-audits.ts";
import { quietLog } from "../../support/log.ts";

const PATH = "/api/v1/admin/allocations";
const REASON = { reason: "a test" };

describe("the API of allocations", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let profileId: ProfileId;
  let skuId: string;
  let made = 0;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    [siteId, profileId, skuId] = [SiteId.parse(seeded.siteId), ProfileId.parse(seeded.profileId), seeded.skuId];
  });
  afterAll(() => api.close());

  const inTx: ApiHarness["database"]["database"]["inTx"] = (fn) => api.database.database.inTx(fn);
  const sweep = () => sweepAllocations({ ...api.database.database, log: quietLog, countersign });
  /** Creates a node that takes new allocations, by default of the SKU `alone`. */
  async function addNode(sku = "alone"): Promise<NodeId> {
    made += 1;
    return inTx((tx) => addSchedulableNode(tx, { siteId, hostname: `c${made}`, sku }));
  }
  const request = (more: object) => ({ tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY], ...more });
  const create = (more: object, headers = {}): Promise<Answer> => api.ask("POST", PATH, request(more), headers);
  const read = (id: string): Promise<Answer> => api.ask("GET", `${PATH}/${id}`);
  async function granted(answer: Answer, ending: Parameters<typeof endTask>[2] = {}): Promise<Answer> {
    await inTx((tx) => endTask(tx, TaskId.parse(answer.body.grant_task_id), ending));
    await sweep();
    return read(answer.body.id);
  }
  const nodeOf = async (id: string) => (await api.ask("GET", `/api/v1/admin/nodes/${id}`)).body;
  const eventsOf = async (id: string) =>
    (
      await api.database.database.db
        .select()
        .from(domainEvents)
        .where(eq(domainEvents.subject, `allocations/${id}`))
        .orderBy(domainEvents.seq)
    ).map(({ type, data }) => ({ type, data }));

  it("makes an account on a named node, which takes no other work until the allocation ends", async () => {
    const nodeId = await addNode();
    expect(await nodeOf(nodeId)).toMatchObject({ schedulable: true, allocation: null });
    const labels = { order: "4711" };
    const answer = await create({ node_id: nodeId, labels });
    expect(answer, JSON.stringify(answer.problem)).toMatchObject({
      status: 202,
      body: { node_id: nodeId, tenant: "acme", login_user: "alice", root: false, labels, status: "granting" },
    });
    const { id } = answer.body;
    const [task] = await api.database.database.db.select().from(tasks).where(eq(tasks.id, answer.body.grant_task_id));
    expect(task).toMatchObject({
      nodeId,
      type: "allocation.grant_user",
      state: "queued",
      input: { allocation_id: id, login_user: "alice", ssh_keys: [SSH_KEY], root: false, plan: false },
    });
    expect(await nodeOf(nodeId)).toMatchObject({
      schedulable: false,
      unschedulable_reasons: ["allocated to acme"],
      allocation: { id, tenant: "acme", status: "granting" },
    });
    expect((await granted(answer)).body).toMatchObject({ status: "active", error_code: null, ssh_keys: [SSH_KEY] });
    expect((await read(id)).body.active_at).not.toBeNull();
    const second = await create({ node_id: nodeId, tenant: "other" });
    expect(second).toMatchObject({ status: 409, problem: { code: "allocation_exists" } });
    expect(second.problem.detail).toContain(`allocated to acme (allocation ${id}, active)`);
    expect((await eventsOf(id)).map(({ type }) => type)).toEqual(["node.allocation.started", "node.allocation.active"]);
  });

  it("tells a new system of the machine the lowest uid, above that of the earlier tenant", async () => {
    const nodeId = await addNode();
    const orderOf = async ({ body }: Answer) =>
      (await api.database.database.db.select().from(tasks).where(eq(tasks.id, body.grant_task_id)))[0]?.input;
    const first = await create({ node_id: nodeId });
    expect(await orderOf(first)).not.toHaveProperty("lowest_uid");
    expect((await granted(first)).body.status).toBe("active");
    await api.database.database.db.delete(allocations).where(eq(allocations.nodeId, nodeId));
    await api.database.database.db.execute(sql`update tenant_uids set made_by = 'an earlier system'`);
    // The agent reported the uid 30001, and the hub believes that the agent skipped 1000 uids at most.
    expect(await orderOf(await create({ node_id: nodeId }))).toMatchObject({ lowest_uid: 21_001 });
  });

  it("keeps the SSH keys out of events, audit and history", async () => {
    const answer = await create({ node_id: await addNode() });
    await granted(answer);
    const { db } = api.database.database;
    const told = [
      await db.select().from(domainEvents),
      await db.select().from(auditLogs),
      await db.select().from(nodeEvents),
    ];
    const text = JSON.stringify(told, (_, value) => (typeof value === "bigint" ? String(value) : value));
    expect(text).toContain(answer.body.id);
    expect(text).not.toContain(SSH_KEY.split(" ")[1]);
    expect(JSON.stringify((await api.ask("GET", PATH)).body)).not.toContain("AAAA");
    const audited = (await doneAudits(db)).filter(({ action }) => action === "createAllocation");
    expect(audited.at(-1)?.details).toMatchObject({ tenant: "acme", login_user: "alice", ssh_keys: 1 });
  });

  it("says why the account could not be made, and makes it again on request", async () => {
    const answer = await create({ node_id: await addNode() });
    const { id } = answer.body;
    const exists = {
      state: "failed",
      result: null,
      errorCode: "account_exists",
      errorMessage: "alice is uid 1000",
    } as const;
    const failed = await granted(answer, exists);
    expect(failed.body).toMatchObject({
      status: "failed",
      error_code: "account_exists",
      error_message: "alice is uid 1000",
    });
    expect(failed.body.next_action).toContain("another login user");
    const again = await api.ask("POST", `${PATH}/${id}/grant`, REASON);
    expect(again).toMatchObject({ status: 202, body: { status: "granting", error_code: null, next_action: null } });
    expect(again.body.grant_task_id).not.toBe(answer.body.grant_task_id);
    expect((await granted(again)).body).toMatchObject({ status: "active" });
    expect(await api.ask("POST", `${PATH}/${id}/grant`, REASON)).toMatchObject({ status: 409 });
    expect((await eventsOf(id)).map(({ type }) => type.split(".").at(-1))).toEqual([
      "started",
      "failed",
      "started",
      "active",
    ]);
  });

  it.each([
    [
      "expired",
      { state: "expired", result: null, errorCode: "deadline_passed", errorMessage: "No agent" },
      "deadline_passed",
    ],
    ["cancelled by an operator", { state: "cancelled", result: null, errorCode: "cancelled" }, "cancelled"],
    ["of an agent that says too little", { result: {} }, "result_unreadable"],
  ] as const)("fails by a task that is %s", async (_what, ending, code) => {
    const failed = await granted(await create({ node_id: await addNode() }), ending);
    expect(failed.body).toMatchObject({ status: "failed", error_code: code });
    expect(failed.body.next_action).not.toBeNull();
  });

  it("refuses a node that takes no work, with all reasons, and writes nothing", async () => {
    const [cordoned, offline, held] = [await addNode(), await addNode(), await addNode()];
    await inTx((tx) => cordonForOperator(tx, cordoned, "ann", "a fan is loud"));
    await inTx((tx) => moveNode(tx, offline, { from: "active", to: "offline", owner: "heartbeat" }, "silent"));
    await api.ask("POST", `/api/v1/admin/nodes/${held}/drain`, REASON);
    const before = await api.counts();
    const refused = await create({ node_id: cordoned });
    expect(refused.problem).toMatchObject({ status: 409, code: "node_not_schedulable" });
    expect(refused.problem.detail).toContain("cordoned: a fan is loud");
    expect((await create({ node_id: offline })).problem.detail).toContain("the node is offline");
    expect((await create({ node_id: held })).problem).toMatchObject({ code: "operation_exists" });
    expect((await create({ node_id: randomUUID() })).problem).toMatchObject({ status: 404 });
    expect(await api.counts()).toEqual(before);
  });

  it("takes a machine that health overrides bar only for who may, if the request says so, and never past Muster's own", async () => {
    const nodeId = await addNode();
    const bar = (source: string) =>
      api.database.database.db.insert(nodeHealthOverrides).values({ nodeId, source, reason: "r", setBy: "ann" });
    await bar("hot");
    const unhealthy = { node_id: nodeId, allow_unhealthy_machine: true };
    expect(await create({ node_id: nodeId })).toMatchObject({
      problem: {
        code: "node_not_schedulable",
        detail: expect.stringContaining("Or ask with allow_unhealthy_machine."),
      },
    });
    const operator = await apiToken(api.database, { name: "op-unhealthy", role: "operator", sites: null });
    expect((await create(unhealthy, { authorization: `Bearer ${operator}` })).problem.code).toBe("forbidden");
    expect((await create({ sku_id: skuId, site_id: siteId, allow_unhealthy_machine: true })).status).toBe(400);
    await inTx((tx) => cordonForOperator(tx, nodeId, "ann", "no"));
    expect((await create(unhealthy)).problem.detail).toMatch(/cannot be allocated: cordoned: no[.]$/);
    await inTx((tx) => uncordonForOperator(tx, nodeId, "ann", "yes"));
    for (const own of ["disk-erase", "restore"]) {
      await bar(own);
      expect((await create(unhealthy)).problem, own).toMatchObject({ detail: expect.stringContaining(own) });
      await api.database.database.db.delete(nodeHealthOverrides).where(eq(nodeHealthOverrides.source, own));
    }
    const made = await create(unhealthy);
    expect(made.body, JSON.stringify(made.problem)).toMatchObject({
      allow_unhealthy_machine: true,
      unhealthy_because: ["hot"],
    });
    const audit = (await doneAudits(api.database.database.db)).at(-1);
    expect(audit?.details).toMatchObject({ allow_unhealthy_machine: true, unhealthy_because: ["hot"] });
    expect((await eventsOf(made.body.id))[0]?.data).toMatchObject({ message: expect.stringContaining("(hot)") });
  });

  it("gives root only on a node that MAAS can deploy again", async () => {
    const nodeId = await addNode();
    const refused = await create({ node_id: nodeId, root: true });
    expect(refused.problem).toMatchObject({ status: 409, code: "conflict" });
    expect(refused.problem.detail).toContain("only a node that MAAS can deploy again gets a tenant with root");
    await inTx((tx) => onboardedWith(tx, { nodeId, siteId, profileId, hostname: `c${made}` }));
    expect((await create({ node_id: nodeId, root: true })).body).toMatchObject({ root: true, status: "granting" });
  });

  it("takes a free node of an SKU at a site, and counts by reason why none is free", async () => {
    const [first, second, third] = [await addNode(skuId), await addNode(skuId), await addNode(skuId)];
    await inTx((tx) => cordonForOperator(tx, third, "ann", "a fan is loud"));
    const wanted = { sku_id: skuId, site_id: siteId };
    const got = [(await create(wanted)).body.node_id, (await create(wanted)).body.node_id];
    expect(new Set(got)).toEqual(new Set([first, second]));
    const none = await create(wanted);
    expect(none.problem).toMatchObject({
      status: 409,
      code: "no_free_node",
      context: { nodes: "3", allocated: "2", cordoned: "1" },
    });
    expect(none.problem.detail).toContain(`SKU ${skuId} has 3 nodes`);
    expect(none.problem.detail).toContain("2 allocated, 1 cordoned");
    expect((await create({ ...wanted, sku_id: "unheard-of" })).problem).toMatchObject({ code: "reference_unknown" });
    expect((await create({ ...wanted, site_id: randomUUID() })).problem).toMatchObject({ code: "reference_unknown" });
  });

  it("gives the first answer again for the same Idempotency-Key", async () => {
    const nodeId = await addNode();
    const key = { "idempotency-key": "order-4711" };
    const [first, again] = [await create({ node_id: nodeId }, key), await create({ node_id: nodeId }, key)];
    expect([first.status, again.status]).toEqual([202, 202]);
    expect(again.body.id).toBe(first.body.id);
  });

  it.each([
    ["neither a node nor an SKU and a site", {}, "/node_id"],
    ["a node and an SKU", { node_id: randomUUID(), sku_id: "s" }, "/node_id"],
    ["an SKU without its site", { sku_id: "s" }, "/node_id"],
    ["an end in the past", { node_id: randomUUID(), ends_at: "2020-01-01T00:00:00Z" }, "/ends_at"],
    ["a tenant with a line break", { node_id: randomUUID(), tenant: "a\nb" }, "/tenant"],
    ["a system's account", { node_id: randomUUID(), login_user: "root" }, "/login_user"],
    ["no key", { node_id: randomUUID(), ssh_keys: [] }, "/ssh_keys"],
    ["a key with options", { node_id: randomUUID(), ssh_keys: [`command="x" ${SSH_KEY}`] }, "/ssh_keys/0"],
    ["a label without a name", { node_id: randomUUID(), labels: { "": "x" } }, "/labels/"],
    [
      "too many labels",
      { node_id: randomUUID(), labels: Object.fromEntries([...Array(33).keys()].map((n) => [`l${n}`, ""])) },
      "/labels",
    ],
  ])("refuses %s", async (_what, more, pointer) => {
    const refused = await create(more);
    expect(refused.problem).toMatchObject({ status: 400, code: "validation_failed" });
    expect(refused.problem.errors?.[0]?.pointer).toBe(pointer);
  });

  it("lists the history of a node, newest first", async () => {
    const nodeId = await addNode();
    const { body } = await create({ node_id: nodeId });
    await api.database.database.db
      .update(allocations)
      .set({ status: "ended", endedAt: sql`now()` })
      .where(eq(allocations.id, body.id));
    const next = (await create({ node_id: nodeId, tenant: "next", login_user: "bob" })).body;
    const ids = async (query: string) =>
      (await api.ask("GET", `${PATH}?${query}`)).body.items.map((one: { id: string }) => one.id);
    expect(await ids(`node_id=${nodeId}`)).toEqual([next.id, body.id]);
    expect(await ids(`node_id=${nodeId}&status=ended`)).toEqual([body.id]);
    expect(await ids(`site_id=${siteId}&tenant=next`)).toEqual([next.id]);
    expect(await ids(`node_id=${nodeId}&login_user=bob`)).toEqual([next.id]);
    expect(await nodeOf(nodeId)).toMatchObject({ allocation: { id: next.id, tenant: "next" } });
    const [node] = await api.database.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
    expect(next).toMatchObject({ hostname: node?.hostname });
  });
});
