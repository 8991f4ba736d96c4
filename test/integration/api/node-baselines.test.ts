import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, desc, eq, sql } from "../../../hub/db/orm.ts";
import { openSession } from "../../../hub/db/queries/agent-sessions.ts";
import { insertDecommissions, recordMachineReleased } from "../../../hub/db/queries/decommissions.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../../hub/db/queries/tasks.ts";
import { insertWorkflows } from "../../../hub/db/queries/workflows.ts";
import { agentSessions, allocations, nodeBaselines, nodes, type Task, tasks } from "../../../hub/db/schema/index.ts";
import { sweepBaselines } from "../../../hub/node/baseline.ts";
import { type NodeId, type SiteId, WorkflowId } from "../../../shared/ids.ts";
import { RESIDUE_ITEM_NAMES, ruleOf } from "../../../shared/residue/items.ts";
import type { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import { SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";
import { addNodeInService } from "../../support/site-nodes.ts";

const DIGEST = "AAAAAAAAAAAAAAAA";
const snapshotWith = (name: string): ResidueSnapshot => ({
  ...Object.fromEntries(
    RESIDUE_ITEM_NAMES.filter((item) => ruleOf(item) !== "tenant").map((item) => [item, { entries: [] }]),
  ),
  cron_and_at: { entries: [{ name, digest: DIGEST }] },
});
const MINE = { login_user: "ann", ssh_keys: [SSH_KEY] };

describe("baselines of nodes", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let made = 0;
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
  });
  afterAll(() => api.close());
  const sweep = (againAfterSeconds?: number) =>
    api.database.database.inTx((tx) => sweepBaselines(tx, againAfterSeconds));
  const connect = (nodeId: NodeId, generation = 0) =>
    api.database.database.inTx((tx) =>
      openSession(tx, {
        nodeId,
        hubId: randomUUID(),
        channel: "websocket",
        bootId: "b1",
        agentVersion: "1.2.3",
        protocolVersion: 1,
        generation,
        heartbeatTtlMs: 30_000,
        remoteAddress: null,
      }),
    );
  async function serving(): Promise<NodeId> {
    made += 1;
    const id = await api.database.database.inTx((tx) => addNodeInService(tx, { siteId, hostname: `b${made}` }));
    await connect(id);
    return id;
  }
  async function newestTask(nodeId: NodeId): Promise<Task> {
    const [task] = await api.database.database.db
      .select()
      .from(tasks)
      .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "node.validate_clean")))
      .orderBy(desc(tasks.createdAt))
      .limit(1);
    if (task === undefined) throw new Error("the node has no task of its baseline");
    return task;
  }
  const finish = (task: Task, ending: Partial<typeof tasks.$inferInsert>) =>
    api.database.database.db
      .update(tasks)
      .set({ finishedAt: sql`now()`, ...ending })
      .where(eq(tasks.id, task.id));
  const succeed = (task: Task, name: string) =>
    finish(task, { state: "succeeded", result: { boot_id: "b1", snapshot: snapshotWith(name) } });
  const read = async (id: NodeId) => (await api.ask("GET", `/api/v1/admin/nodes/${id}/baseline`)).body;
  const ask = (id: NodeId) => api.ask("POST", `/api/v1/admin/nodes/${id}/baseline`, { reason: "new kernel" });
  async function allocate(nodeId: NodeId, more: Partial<typeof allocations.$inferInsert> = {}, started = true) {
    const { db } = api.database.database;
    const [row] = await db
      .insert(allocations)
      .values({
        nodeId,
        hostname: "h",
        generation: 0,
        tenant: "acme",
        loginUser: "ann",
        sshKeys: [SSH_KEY],
        grantsRoot: false,
        labels: {},
        status: "active",
        createdBy: "test",
        ...more,
      })
      .returning();
    if (row === undefined) throw new Error("no allocation");
    const { task } = await api.database.database.inTx((tx) =>
      enqueueTask(tx, {
        nodeId,
        type: "allocation.grant_user",
        input: { allocation_id: row.id, root: false, plan: false, ...MINE },
        idempotencyKey: randomUUID(),
        deadlineSeconds: 60,
      }),
    );
    if (started) await db.update(tasks).set({ startedAt: sql`now()` }).where(eq(tasks.id, task.id));
    return row;
  }
  async function takenBaseline(): Promise<NodeId> {
    const id = await serving();
    await sweep();
    await succeed(await newestTask(id), "first");
    await sweep();
    return id;
  }

  it("are missing at first, then ordered once, then taken, and the node shows each state", async () => {
    const id = await serving();
    expect((await api.ask("GET", `/api/v1/admin/nodes/${id}`)).body.baseline).toMatchObject({ state: "missing" });
    await sweep();
    await sweep();
    const task = await newestTask(id);
    expect(task).toMatchObject({ state: "queued", input: { allocation: null, plan: false } });
    const all = await api.database.database.db.select().from(tasks).where(eq(tasks.nodeId, id));
    expect(all).toHaveLength(1);
    expect(await read(id)).toMatchObject({ state: "requested", snapshot: null, requested_by: "hub" });

    await succeed(task, "/etc/cron.d/x");
    await sweep();
    expect(await read(id)).toMatchObject({
      state: "taken",
      generation: 0,
      boot_id: "b1",
      agent_version: "1.2.3",
      snapshot: { cron_and_at: { entries: [{ name: "/etc/cron.d/x", digest: DIGEST }] } },
    });
    expect((await api.ask("GET", `/api/v1/admin/nodes/${id}`)).body.baseline).toMatchObject({ state: "taken" });
    expect(await sweep()).toEqual({ ordered: 0, taken: 0, refused: 0 });
  });

  it("name the items that the agent could not read", async () => {
    const id = await serving();
    await sweep();
    const snapshot = { ...snapshotWith("x"), firewall: { unreadable: "no nft" } };
    await finish(await newestTask(id), { state: "succeeded", result: { boot_id: "b1", snapshot } });
    await sweep();
    expect((await read(id)).unreadable).toEqual([{ item: "firewall", reason: "no nft" }]);
  });

  it("are not ordered for a node that is not active, whose agent is away, or that had a tenant", async () => {
    const { inTx, db } = api.database.database;
    const away = await inTx((tx) => addNodeInService(tx, { siteId, hostname: "away" }));
    const [offline, used] = [await serving(), await serving()];
    await db.update(nodes).set({ status: "quarantined" }).where(eq(nodes.id, offline));
    await allocate(used, { status: "ended", endedAt: new Date() });
    await sweep();
    for (const id of [away, offline, used]) expect(await read(id)).toMatchObject({ state: "missing" });
  });

  it("wait for an allocation that ends only while the host has the system that the tenant used", async () => {
    const { inTx, db } = api.database.database;
    const [kept, reimaged] = [await serving(), await serving()];
    for (const id of [kept, reimaged]) {
      await allocate(id, { status: "ending" });
      await db.update(nodes).set({ generation: 1 }).where(eq(nodes.id, id));
      await connect(id, 1);
    }
    const asked = { mode: "reimage", erase: "none", reason: "next tenant", agent_wait_seconds: 0 } as const;
    const decommissionId = WorkflowId.parse(randomUUID());
    const about = { nodeId: reimaged, siteId, hostname: "h", maasSystemId: null, priorStatus: "active" } as const;
    await inTx(async (tx) => {
      await insertWorkflows(tx, [
        { id: decommissionId, kind: asked.mode, siteId, stage: "take_baseline", input: asked, requestedBy: "ann" },
      ]);
      await insertDecommissions(tx, [
        {
          decommissionId,
          mode: asked.mode,
          reason: asked.reason,
          priorQuarantinedBy: null,
          ...about,
        },
      ]);
      await recordMachineReleased(tx, decommissionId, 0);
    });
    await sweep();
    expect(await read(kept)).toMatchObject({ state: "missing" });
    await succeed(await newestTask(reimaged), "new");
    await sweep();
    expect(await read(reimaged)).toMatchObject({ state: "taken", generation: 1 });
  });

  it("are ordered again a while after their task failed", async () => {
    const id = await serving();
    await sweep();
    const first = await newestTask(id);
    await finish(first, { state: "failed", errorCode: "snapshot_failed", errorMessage: "no nice" });
    await sweep(3_600);
    expect((await newestTask(id)).id).toBe(first.id);
    expect(await read(id)).toMatchObject({ state: "failed", problem: "no nice" });
    await sweep(0);
    expect((await newestTask(id)).id).not.toBe(first.id);
    expect(await read(id)).toMatchObject({ state: "requested", problem: null });
  });

  it("are ordered again after an update of an agent that did not report all items", async () => {
    const id = await serving();
    await sweep();
    const first = await newestTask(id);
    const { disks: _, ...snapshot } = snapshotWith("x");
    await finish(first, { state: "succeeded", result: { boot_id: "b1", snapshot } });
    await sweep();
    await sweep(0);
    expect((await newestTask(id)).id, "the same agent would not report more").toBe(first.id);
    const { db } = api.database.database;
    await db.update(agentSessions).set({ agentVersion: "1.2.4" }).where(eq(agentSessions.nodeId, id));
    await sweep(0);
    const second = await newestTask(id);
    expect(second.id).not.toBe(first.id);
    expect(await read(id), "the old snapshot counts until then").toMatchObject({ state: "taken" });
    await succeed(second, "y");
    await sweep();
    await sweep(0);
    expect((await newestTask(id)).id).toBe(second.id);
    expect((await read(id)).snapshot.disks).toEqual({ entries: [] });
  });

  it("that lack an item keep the node from new work, and a soft reset says before it begins that it will not be clean", async () => {
    const [old, unread, complete] = [await serving(), await serving(), await takenBaseline()];
    await sweep();
    const { disks: _, ...snapshot } = snapshotWith("x");
    const ended = { state: "succeeded" } as const;
    await finish(await newestTask(old), { ...ended, result: { boot_id: "b1", snapshot } });
    const unreadable = { ...snapshotWith("x"), firewall: { unreadable: "no nft" } };
    await finish(await newestTask(unread), { ...ended, result: { boot_id: "b1", snapshot: unreadable } });
    await sweep();
    const shown = async (id: NodeId) => {
      const { baseline, unschedulable_reasons: reasons } = (await api.ask("GET", `/api/v1/admin/nodes/${id}`)).body;
      return [
        baseline.state,
        baseline.missing_items,
        reasons.filter((one: string) => one.includes("residue baseline")),
      ];
    };
    const told = (item: string) => [
      expect.stringContaining(`it has a residue baseline without ${item}, so no soft reset`),
    ];
    expect(await shown(complete)).toEqual(["taken", [], []]);
    expect(await shown(old)).toEqual(["taken", ["disks"], told("disks")]);
    expect(await shown(unread), "an unreadable item is no missing item").toEqual(["taken", [], []]);

    const operation = { mode: "soft_reset", storage_cleanup: "none", reason: "next tenant" };
    const planned = { site_id: siteId, operation, node_ids: [old, complete], plan: true };
    const { decommissions } = (await api.ask("POST", "/api/v1/admin/decommissions/batch", planned)).body;
    const warnings = new Map(
      decommissions.map((one: { node_id: string; warning: unknown }) => [one.node_id, one.warning]),
    );
    expect(warnings.get(complete)).toBe(null);
    expect(warnings.get(old)).toContain("without disks, so the soft reset cannot show that the host is clean");
    const cleanup = { ...planned, operation: { mode: "storage_cleanup", scope: "local", reason: "full" } };
    const { refusals, accepted } = (await api.ask("POST", "/api/v1/admin/decommissions/batch", cleanup)).body;
    expect([accepted, refusals]).toMatchObject([1, [{ node_id: old, error_code: "conflict" }]]);
    expect(refusals[0].message).toContain("has a residue baseline without disks");

    await allocate(old);
    expect(await shown(old), "a tenant's node says it too").toEqual(["taken", ["disks"], told("disks")]);
  });

  it("are refused if the result is no snapshot, or if a tenant got an account meanwhile", async () => {
    const [broken, shared, late] = [await serving(), await serving(), await serving()];
    await sweep();
    await finish(await newestTask(broken), { state: "succeeded", result: { boot_id: "b1", snapshot: { coffee: {} } } });
    await allocate(shared);
    await allocate(late, { status: "granting" }, false);
    await succeed(await newestTask(shared), "x");
    await succeed(await newestTask(late), "x");
    expect(await sweep()).toEqual({ ordered: 0, taken: 1, refused: 2 });
    expect(await read(broken)).toMatchObject({ state: "failed", problem: expect.stringContaining("not a snapshot") });
    expect(await read(shared)).toMatchObject({ state: "failed", problem: expect.stringContaining("tenant") });
    expect(await read(late)).toMatchObject({ state: "taken" });
  });

  it("belong to a generation: a newer generation gets its own, and the older one goes", async () => {
    const id = await takenBaseline();
    const { db } = api.database.database;
    await db.update(nodes).set({ generation: 1 }).where(eq(nodes.id, id));
    expect(await read(id)).toMatchObject({ state: "missing", generation: 1 });
    await sweep();
    expect(await read(id)).toMatchObject({ state: "missing" });
    await connect(id, 1);
    await sweep();
    expect(await read(id)).toMatchObject({ state: "requested", generation: 1 });
    const rows = await db.select().from(nodeBaselines).where(eq(nodeBaselines.nodeId, id));
    expect(rows.map(({ generation }) => generation)).toEqual([1]);
  });

  it("are taken anew by an operator with a reason, and the old snapshot counts until then", async () => {
    const id = await takenBaseline();
    const first = await newestTask(id);
    const answer = await ask(id);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({
      state: "taken",
      reason: "new kernel",
      requested_by: expect.stringContaining("operator:"),
      snapshot: { cron_and_at: { entries: [{ name: "first" }] } },
    });
    const second = await newestTask(id);
    expect(second.id).not.toBe(first.id);
    expect(await readTask(api.database.database.db, second.id)).toMatchObject({ state: "queued" });
    await succeed(second, "second");
    await sweep();
    expect((await read(id)).snapshot.cron_and_at).toEqual({ entries: [{ name: "second", digest: DIGEST }] });
  });

  it("are refused to an operator while the node has a tenant, or after a tenancy without a completed turnover", async () => {
    const [open, unclean, forced, clean, retired] = [
      await takenBaseline(),
      await takenBaseline(),
      await takenBaseline(),
      await takenBaseline(),
      await takenBaseline(),
    ];
    const ended = { status: "ended", endedAt: new Date() } as const;
    const turnover = WorkflowId.parse(randomUUID());
    await api.database.database.pool.query(
      "insert into workflows (id, kind, status, stage, input) values ($1, 'drain', 'completed', 'enable_node', '{}')",
      [turnover],
    );
    await allocate(open);
    await allocate(unclean, ended);
    await allocate(forced, { ...ended, decommissionId: turnover, endForced: true });
    await allocate(clean, { ...ended, decommissionId: turnover });
    await api.database.database.db.update(nodes).set({ status: "retired" }).where(eq(nodes.id, retired));
    const told = async (id: NodeId) => {
      const { status, problem } = await ask(id);
      return [status, problem?.detail];
    };
    expect(await told(open)).toEqual([409, expect.stringContaining("has an allocation")]);
    expect(await told(unclean)).toEqual([409, expect.stringContaining("did not complete")]);
    expect(await told(forced)).toEqual([409, expect.stringContaining("did not complete")]);
    expect(await told(retired)).toEqual([409, expect.stringContaining("retired")]);
    expect((await ask(clean)).status).toBe(202);
    expect((await newestTask(open)).state).toBe("succeeded");
  });

  it("are not found for an unknown node", async () => {
    expect((await api.ask("GET", `/api/v1/admin/nodes/${randomUUID()}/baseline`)).status).toBe(404);
  });
});
