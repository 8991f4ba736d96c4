import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { closedHosts, hasWaitingUndrain } from "../../../hub/db/queries/closed-hosts.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../../hub/db/queries/tasks.ts";
import {
  auditLogs,
  maasMachines,
  nodeCertificates,
  nodeConditions,
  nodeInventories,
  nodeMaasState,
  tasks,
} from "../../../hub/db/schema/index.ts";
import { enterDraining, retire } from "../../../hub/node/lifecycle.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { type NodeId, type SiteId, TaskId } from "../../../shared/ids.ts";
import type { Inventory } from "../../../shared/inventory.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";
import { addNode as addSiteNode } from "../../support/site-nodes.ts";

const NODES = "/api/v1/admin/nodes";
const INVENTORY: Inventory = {
  hostname: "n1",
  boot_id: "b1",
  system: { manufacturer: "m", model: "m", uuid: "u" },
  os: { distro: "Ubuntu", release: "24.04", kernel: "6.8", arch: "x64" },
  cpu: { model: "c", cores: 1, sockets: 1 },
  memory_bytes: 1,
  disks: [],
  interfaces: [],
  gpus: [],
};

describe("the API of nodes and their tasks", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
  });
  afterAll(() => api.close());

  const addNode = (hostname: string) => api.database.database.inTx((tx) => addSiteNode(tx, { siteId, hostname }));
  const check = (id: NodeId, headers = {}) =>
    api.ask("POST", `${NODES}/${id}/tasks`, { type: "node.heartbeat_check", input: { nonce: "n" } }, headers);

  it("shows a node with its conditions, inventory, machine in MAAS, and history", async () => {
    const id = await addNode("c01u01");
    const { db, inTx } = api.database.database;
    await inTx((tx) => moveNode(tx, id, { from: "enrolling", to: "active", owner: "onboarding" }, "ready"));
    const bare = await api.ask("GET", `${NODES}/${id}`);
    expect(bare.body).toMatchObject({ inventory: null, maas: null, conditions: [], schedulable: false });
    await db.insert(nodeInventories).values({ nodeId: id, inventory: INVENTORY });
    await db.insert(nodeMaasState).values({ nodeId: id, siteId, maasSystemId: "abc123", ipmiIp: "10.0.0.1" });
    const machine = { hostname: "c01u01", status: 6, statusName: "Deployed", statusMessage: "", errorDescription: "" };
    await db
      .insert(maasMachines)
      .values({ siteId, systemId: "abc123", ...machine, powerState: "on", locked: false, ipAddresses: ["10.1.1.1"] });
    const observed = { source: "agent", generation: 0, observedAt: sql`now()` };
    await db
      .insert(nodeConditions)
      .values({ nodeId: id, type: "os.booted", status: "True", reason: "Booted", message: "", ...observed });
    const shown = await api.ask("GET", `${NODES}/${id}`);
    expect(shown.body).toMatchObject({
      status: "active",
      inventory: INVENTORY,
      maas_system_id: "abc123",
      maas: { status: "Deployed", power_state: "on", ip_addresses: ["10.1.1.1"], hardware: null },
      conditions: [{ type: "os.booted", status: "True" }],
    });
    expect(shown.body.events.map((event: { to_status: string }) => event.to_status)).toEqual(["active", "enrolling"]);
    const details = { tags: ["gpu"], pool: "default", zone: "az1", macs: [], hardware_uuid: "U-1", serial: "S-1" };
    const system = { architecture: "amd64", osystem: "ubuntu", distro_series: "noble", cpu_count: 8, memory_mib: 1 };
    const parts = { board_serial: "B-1", chassis_serial: "C-1" };
    await db.update(maasMachines).set({ details: { ...details, ...system, ...parts, ephemeral: false } });
    expect((await api.ask("GET", `${NODES}/${id}`)).body.maas.hardware).toEqual({
      ...{ uuid: "U-1", serial: "S-1", board_serial: "B-1", chassis_serial: "C-1", firmware_version: null },
      ...{ zone: "az1", pool: "default", tags: ["gpu"] },
    });
    await db.update(maasMachines).set({ absent: true });
    expect((await api.ask("GET", `${NODES}/${id}`)).body.maas.status).toBe("absent");
  });

  it("lists nodes by hostname, page by page, and filters by status, site and hostname", async () => {
    for (const hostname of ["c02u03", "c02u01", "c02u02"]) await addNode(hostname);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page: { body: { items: { hostname: string }[]; next_cursor: string | null } } = await api.ask(
        "GET",
        `${NODES}?limit=2&status=enrolling${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      seen.push(...page.body.items.map((node) => node.hostname));
      cursor = page.body.next_cursor;
    }
    expect(seen).toEqual(["c02u01", "c02u02", "c02u03"]);
    expect((await api.ask("GET", `${NODES}?site_id=${randomUUID()}`)).body.items).toEqual([]);
    const named = await api.ask("GET", `${NODES}?hostname=c02u02`);
    expect(named.body.items.map((node: { hostname: string }) => node.hostname)).toEqual(["c02u02"]);
    expect((await api.ask("GET", `${NODES}?status=asleep`)).problem.errors?.[0]?.pointer).toBe("/status");
    expect((await api.ask("GET", `${NODES}?site_id=x`)).problem.errors?.[0]?.pointer).toBe("/site_id");
  });

  it("queues a check once per key, shows it, and cancels it once under repeated requests", async () => {
    const id = await addNode("c03u01");
    const [first, again] = [await check(id, { "idempotency-key": "k" }), await check(id, { "idempotency-key": "k" })];
    expect(first.status).toBe(202);
    expect(again.body.id).toBe(first.body.id);
    expect((await check(id)).body.id).not.toBe(first.body.id);
    expect((await api.ask("GET", `${NODES}/${id}/tasks`)).body.items).toHaveLength(2);
    const task = `/api/v1/admin/tasks/${first.body.id}`;
    expect((await api.ask("GET", task)).body).toMatchObject({ state: "queued", node_id: id, result: null });
    expect((await api.ask("POST", `${task}/cancel`)).body.state).toBe("cancelled");
    expect((await api.ask("POST", `${task}/cancel`)).body.state).toBe("cancelled");
    expect((await api.ask("GET", task)).body.state).toBe("cancelled");
  });

  it("activates a retired node, and calls it schedulable only after its host is open again", async () => {
    const id = await addNode("c05u01");
    const { db, inTx } = api.database.database;
    const retireIt = () =>
      inTx(async (tx) => {
        await enterDraining(tx, id, randomUUID(), "old");
        await retire(tx, id, "old");
      });
    await inTx((tx) => moveNode(tx, id, { from: "enrolling", to: "active", owner: "onboarding" }, "ready"));
    // The requests of the test have one request id, as the requests of an operator's script may have.
    const activate = () =>
      api.ask("POST", `${NODES}/${id}/activate`, { reason: "needed" }, { "x-request-id": "job-7" });
    const undrains = () =>
      db
        .select()
        .from(tasks)
        .where(and(eq(tasks.nodeId, id), eq(tasks.type, "node.undrain")))
        .orderBy(tasks.createdAt);
    const end = (state: "succeeded" | "failed") =>
      db
        .update(tasks)
        .set({ state })
        .where(and(eq(tasks.nodeId, id), eq(tasks.state, "queued")));
    const closed = expect.stringContaining("keeps users out");
    const reasons = async () => (await api.ask("GET", `${NODES}/${id}`)).body.unschedulable_reasons;

    await retireIt();
    // A forced drain of a node without a connected agent leaves a queued drain task for the agent.
    await inTx((tx) =>
      enqueueTask(tx, {
        nodeId: id,
        type: "node.drain",
        input: { reason: "old", deadline_seconds: 0, force: true },
        idempotencyKey: "left",
        deadlineSeconds: 60,
      }),
    );
    expect((await activate()).body.status).toBe("active");
    const left = await db.select().from(tasks).where(eq(tasks.idempotencyKey, "left"));
    expect(left).toMatchObject([{ state: "cancelled" }]);
    expect(await reasons()).toContainEqual(closed);
    expect((await activate()).status).toBe(200);
    expect(await undrains(), "one that waits is enough").toHaveLength(1);
    await end("failed");
    expect(await reasons()).toContainEqual(closed);
    expect((await activate()).status).toBe(200);
    expect(await undrains(), "asking again tries again").toHaveLength(2);
    await end("succeeded");
    expect(await reasons()).not.toContainEqual(closed);
    expect((await activate()).status).toBe(200);
    expect(await undrains(), "an open host needs no other").toHaveLength(2);

    await retireIt();
    expect((await activate()).body.status).toBe("active");
    expect(await undrains(), "each drain is taken back by an undrain of its own").toHaveLength(3);
  });

  it("orders the plan of a task, which is no task of the node's operations", async () => {
    const id = await addNode("c09u01");
    const { db, inTx } = api.database.database;
    await inTx((tx) => moveNode(tx, id, { from: "enrolling", to: "active", owner: "onboarding" }, "ready"));
    const before = (await api.ask("GET", `${NODES}/${id}`)).body;
    const order = async (type: string, input: object) => {
      const { status, body } = await api.ask("POST", `${NODES}/${id}/tasks`, { type, plan: true, input });
      expect({ status, ...body }).toMatchObject({ status: 202, type, plan: true, state: "queued" });
      await db.update(tasks).set({ state: "succeeded", attempts: 1 }).where(eq(tasks.id, body.id));
    };
    await order("node.drain", { reason: "r", deadline_seconds: 0, force: true });
    // A carried-out drain would have closed the host, and a carried-out undrain would have opened it.
    expect(await closedHosts(db, [id])).toEqual(new Set());
    const drain = { nodeId: id, idempotencyKey: "drained", deadlineSeconds: 60 };
    const input = { reason: "r", deadline_seconds: 0, force: true };
    await inTx((tx) => enqueueTask(tx, { ...drain, type: "node.drain", input }));
    await db.update(tasks).set({ state: "succeeded", attempts: 1 }).where(eq(tasks.idempotencyKey, "drained"));
    await order("node.undrain", { reason: "r" });
    expect(await closedHosts(db, [id])).toEqual(new Set([id]));
    await api.ask("POST", `${NODES}/${id}/tasks`, { type: "node.undrain", plan: true, input: { reason: "r" } });
    expect(await inTx((tx) => hasWaitingUndrain(tx, id))).toBe(false);
    await order("node.hw_sync_reseed", { system_id: "x7", maas_url: "http://rack:5248/MAAS", interval_seconds: 300 });

    const after = (await api.ask("GET", `${NODES}/${id}`)).body;
    expect([after.status, after.conditions, after.events]).toEqual([before.status, before.conditions, before.events]);
    const shown = (await api.ask("GET", `${NODES}/${id}/tasks`)).body.items;
    expect(shown.map(({ plan }: { plan: boolean }) => plan)).toEqual([true, true, true, false, true]);
    const lifecycle = (await api.ask("GET", `${NODES}/${id}/lifecycle`)).body.items;
    const told = lifecycle.flatMap((one: { kind: string; what: string }) => (one.kind === "task" ? [one.what] : []));
    expect(told.slice(0, 2)).toEqual(["node.drain (plan)", "node.drain"]);
    const secret = { system_id: "x7", maas_url: "http://rack/", interval_seconds: 300, machine_token: null };
    const body = { type: "node.hw_sync_reseed", plan: true, input: secret };
    expect((await api.ask("POST", `${NODES}/${id}/tasks`, body)).problem.errors?.[0]?.pointer).toBe(
      "/input/machine_token",
    );
  });

  it("orders a close of terminals or its plan, and neither without the word which of them", async () => {
    const id = await addNode("c09u02");
    const order = (words: object, input: object = { login_user: "alice" }) =>
      api.ask("POST", `${NODES}/${id}/tasks`, { type: "terminal.close", ...words, input });
    const stored = async (id: string) => (await readTask(api.database.database.db, TaskId.parse(id)))?.input;
    for (const plan of [true, false]) {
      const { status, body } = await order({ plan });
      expect({ status, ...body }).toMatchObject({ status: 202, type: "terminal.close", plan, state: "queued" });
      expect(await stored(body.id)).toEqual({ login_user: "alice", plan });
    }
    expect((await order({})).problem.errors?.[0]?.pointer).toBe("/plan");
    expect((await order({ plan: true }, { login_user: "alice", plan: false })).problem.errors?.[0]?.pointer).toBe(
      "/input/plan",
    );
    expect((await order({ plan: false }, { login_user: "../root" })).problem.errors?.[0]?.pointer).toBe(
      "/input/login_user",
    );
  });

  it("audits the state of a node before an operation and its expected state afterwards", async () => {
    const id = await addNode("c07u01");
    const { db, inTx } = api.database.database;
    await inTx((tx) => moveNode(tx, id, { from: "enrolling", to: "active", owner: "onboarding" }, "ready"));
    const certificate = { nodeId: id, generation: 0, publicKeySha256: "", notBefore: new Date(), notAfter: new Date() };
    await db.insert(nodeCertificates).values({ serial: id, ...certificate });
    const operate = async (what: string) =>
      (await api.ask("POST", `${NODES}/${id}/${what}`, { reason: "old" })).body.decommission_id as string | undefined;
    await operate("revoke-certificates");
    const decommission = await operate("drain");
    await api.ask("POST", `/api/v1/admin/decommissions/${decommission}/force`, { reason: "old" });
    await api.ask("POST", `/api/v1/admin/decommissions/${decommission}/cancel`, { reason: "old" });
    await inTx(async (tx) => {
      await enterDraining(tx, id, randomUUID(), "old");
      await retire(tx, id, "old");
    });
    await operate("activate");
    const audited = await db.select().from(auditLogs).orderBy(auditLogs.occurredAt, auditLogs.id);
    const told = (action: string) => {
      const { prior, expected } = (audited.findLast((row) => row.action === action)?.details ?? {}) as Record<
        string,
        object
      >;
      return { prior, expected };
    };
    expect(told("revokeNodeCertificates")).toEqual({
      prior: { status: "active", valid_certificates: 1 },
      expected: { status: "active", valid_certificates: 0 },
    });
    expect(told("drainNode")).toEqual({ prior: { status: "active" }, expected: { status: "retired" } });
    expect(told("forceDecommission")).toMatchObject({
      prior: { status: "pending", stage: "disable_node" },
      expected: { status: "completed", node_status: "retired" },
    });
    expect(told("activateNode")).toEqual({ prior: { status: "retired" }, expected: { status: "active" } });
  });

  it("queues one task per request, even if two requests have the same request id", async () => {
    const id = await addNode("c06u01");
    const [first, second] = [
      await check(id, { "x-request-id": "job-8" }),
      await check(id, { "x-request-id": "job-8" }),
    ];
    expect(second.body.id).not.toBe(first.body.id);
  });

  it("accepts only tasks that the catalogue lets an operator queue, and names the wrong field", async () => {
    const id = await addNode("c04u01");
    const before = await api.counts();
    const refused = async (body: unknown) =>
      (await api.ask("POST", `${NODES}/${id}/tasks`, body)).problem.errors?.map((error) => error.pointer);
    expect(await refused({ type: "shell", input: { command: "id" } })).toEqual(["/type"]);
    const drain = { reason: "r", deadline_seconds: 0, force: true };
    expect(await refused({ type: "node.drain", input: drain })).toEqual(["/plan"]);
    expect(await refused({ type: "node.drain", plan: false, input: drain })).toEqual(["/plan"]);
    expect(await refused({ type: "node.sign_record", plan: true, input: { text: "{}" } })).toEqual(["/type"]);
    expect(await refused({ type: "node.heartbeat_check", input: { nonce: "" } })).toEqual(["/input/nonce"]);
    expect(await refused({ type: "node.heartbeat_check", input: { nonce: "n", extra: 1 } })).toEqual(["/input/extra"]);
    expect(await api.counts()).toEqual(before);
  });
});
