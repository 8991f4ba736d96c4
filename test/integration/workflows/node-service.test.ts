import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, asc, eq, inArray } from "../../../hub/db/orm.ts";
import { recordMachineReleased } from "../../../hub/db/queries/decommissions.ts";
import { revokeCertificates } from "../../../hub/db/queries/node-certificates.ts";
import {
  auditLogs,
  domainEvents,
  enrollmentTokens,
  maasMachines,
  nodeDecommissions,
  nodeMaasState,
  skus,
  workflows,
} from "../../../hub/db/schema/index.ts";
import { setHealthOverride } from "../../../hub/node/health-override.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { NodeId, type SiteId, WorkflowId } from "../../../shared/ids.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";
import { addMachine, addNodeInService, retireNode } from "../../support/site-nodes.ts";

const NODES = "/api/v1/admin/nodes";
const REASON = { reason: "a fan is loud" };

describe("an operator's decisions about a node over the API", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
  });
  afterAll(() => api.close());

  const db = () => api.database.database.db;
  const inTx: ApiHarness["database"]["database"]["inTx"] = (work) => api.database.database.inTx(work);
  const ask = (id: NodeId, what: string, body: unknown = REASON, headers = {}) =>
    api.ask("POST", `${NODES}/${id}/${what}`, body, headers);
  const node = async (id: NodeId) => (await api.ask("GET", `${NODES}/${id}`)).body;

  /** Creates an active node with a machine of the status `machine` in MAAS, or without a machine if `machine` is null. */
  const active = (hostname: string, machine: number | null = null): Promise<NodeId> =>
    inTx(async (tx) => {
      const id = await addNodeInService(tx, { siteId, hostname });
      if (machine !== null) await addMachine(tx, { siteId, hostname, nodeId: id }, { status: machine });
      return id;
    });
  async function quarantinedBySystem(hostname: string, machine = 6): Promise<NodeId> {
    const id = await active(hostname, machine);
    await inTx(async (tx) => {
      await moveNode(tx, id, { from: "active", to: "quarantined", owner: "reconciler" }, "released outside");
      await tx.update(nodeMaasState).set({ quarantinedAt: new Date() }).where(eq(nodeMaasState.nodeId, id));
    });
    return id;
  }
  async function retired(hostname: string, machine: number | null = null): Promise<NodeId> {
    const id = await active(hostname, machine);
    await inTx((tx) => retireNode(tx, id));
    return id;
  }
  const bindingOf = async (id: NodeId) =>
    (await db().select().from(nodeMaasState).where(eq(nodeMaasState.nodeId, id)))[0];
  const eventsOf = async (id: NodeId, type: string) =>
    (
      await db()
        .select({ data: domainEvents.data })
        .from(domainEvents)
        .where(and(eq(domainEvents.subject, `nodes/${id}`), eq(domainEvents.type, type)))
        .orderBy(asc(domainEvents.seq))
    ).map(({ data }) => data);

  describe("quarantine", () => {
    it("takes a node out of service once, with an audit row and an event", async () => {
      const id = await active("q-1");
      const key = { "idempotency-key": randomUUID() };
      for (let times = 0; times < 2; times += 1)
        expect(await ask(id, "quarantine", REASON, key)).toMatchObject({
          status: 200,
          body: { node_id: id, status: "quarantined" },
        });
      expect(await ask(id, "quarantine")).toMatchObject({ status: 200, body: { status: "quarantined" } });
      expect(await node(id)).toMatchObject({
        status: "quarantined",
        schedulable: false,
        events: [
          { from_status: "active", to_status: "quarantined", owner: "operator", message: REASON.reason },
          {},
          {},
        ],
      });
      expect((await eventsOf(id, "node.status.changed")).at(-1)).toMatchObject({
        to: "quarantined",
        owner: "operator",
      });
      const audits = await db()
        .select()
        .from(auditLogs)
        .where(and(eq(auditLogs.target, `nodes/${id}`), eq(auditLogs.action, "quarantineNode")));
      expect(audits[0]).toMatchObject({ reason: REASON.reason, details: { prior: { status: "active" } } });
    });

    it("takes over a quarantine by the system, which the system then no longer lifts (decision N4)", async () => {
      const id = await quarantinedBySystem("q-2");
      expect((await ask(id, "quarantine")).status).toBe(200);
      expect((await bindingOf(id))?.quarantinedAt).toBeNull();
    });

    it("is refused with advice what to do instead", async () => {
      const draining = await active("q-3");
      await ask(draining, "drain");
      expect((await ask(draining, "quarantine")).problem.code).toBe("operation_exists");
      const { problem } = await ask(await retired("q-4"), "quarantine");
      expect(problem).toMatchObject({
        code: "conflict",
        detail: expect.stringContaining("until somebody activates it"),
      });
      expect((await ask(NodeId.parse(randomUUID()), "quarantine")).problem.code).toBe("not_found");
    });
  });

  describe("lifting a quarantine", () => {
    it("returns a node to service that a person or the system had quarantined", async () => {
      const [own, systems] = [await active("l-1", 6), await quarantinedBySystem("l-2")];
      await ask(own, "quarantine");
      for (const id of [own, systems]) {
        expect(await ask(id, "lift-quarantine")).toMatchObject({ status: 200, body: { status: "active" } });
        expect(await ask(id, "lift-quarantine")).toMatchObject({ status: 200, body: { status: "active" } });
        expect((await bindingOf(id))?.quarantinedAt).toBeNull();
      }
    });

    it("is refused if the machine is not deployed, the identity is void, or the node is not quarantined", async () => {
      const elsewhere = await quarantinedBySystem("l-3", 4);
      expect((await ask(elsewhere, "lift-quarantine")).problem.detail).toContain("is 'status 4' in MAAS");
      const revoked = await active("l-4");
      await ask(revoked, "quarantine");
      await inTx((tx) => revokeCertificates(tx, revoked, "all", "stolen"));
      expect((await ask(revoked, "lift-quarantine")).problem.detail).toContain("re-enroll-node");
      expect((await ask(await retired("l-5"), "lift-quarantine")).problem.detail).toContain("no quarantine to lift");
    });
  });

  describe("a health override", () => {
    it("keeps work off with its source and reason until a person removes it", async () => {
      const id = await active("o-1");
      const override = { nodeId: id, source: "disk-erase", target: "abc123", setBy: "operator:ann" };
      for (const reason of ["an older reason", "not erased"])
        await inTx((tx) => setHealthOverride(tx, { ...override, reason }));
      const shown = await node(id);
      const told = {
        source: "disk-erase",
        target: "abc123",
        reason: "not erased",
        set_by: "operator:ann",
        needed_erase: "secure",
      };
      expect(shown.health_overrides, "a new one replaces an older one of its source").toMatchObject([told]);
      expect(shown.unschedulable_reasons.join()).toContain("health override disk-erase: not erased");
      const remove = (source: string) => ask(id, "remove-health-override", { source, reason: "disks replaced" });
      expect((await remove("repair")).problem.detail).toContain("Its overrides: disk-erase.");
      expect(await remove("disk-erase")).toMatchObject({ status: 200, body: { node_id: id, health_overrides: [] } });
      expect((await remove("disk-erase")).status).toBe(404);
      const after = await node(id);
      expect(after.unschedulable_reasons.join()).not.toContain("health override");
      expect(after.events).toContainEqual(
        expect.objectContaining({ type: "health_override_removed", owner: "operator:admin" }),
      );
      const rows = await db()
        .select()
        .from(auditLogs)
        .where(and(eq(auditLogs.target, `nodes/${id}`), eq(auditLogs.reason, "disks replaced")));
      expect(rows).toMatchObject([{ details: { prior: told, expected: null } }]);
    });
  });

  it("has its lifecycle exported, oldest first, as JSON and as CSV, without what tasks hold", async () => {
    const id = await active("o-10");
    await ask(id, "cordon", { reason: "=1+1, loud" });
    await inTx((tx) =>
      setHealthOverride(tx, { nodeId: id, source: "repair", target: null, reason: "x", setBy: "operator:ann" }),
    );
    const { body: drained } = await ask(id, "drain", { reason: "moves" });
    await api.database.database.pool.query(
      `insert into tasks (node_id, type, input, idempotency_key, deadline, state, error_code, error_message)
       values ($1, 'allocation.grant_user', '{"ssh_keys": ["ssh-ed25519 AAAAkey"]}', 'k', now(), 'failed', 'no_space', 'full')`,
      [id],
    );
    await api.database.database.pool.query(
      `with failed as (update workflows set status = 'failed_retryable', failure_message = 'away' where id = $1)
       insert into workflow_events (workflow_id, fence, stage, attempt, status, message) values ($1, 1, 'drain_node', 1, 'failed', 'away')`,
      [drained.decommission_id],
    );
    const path = `${NODES}/${id}/lifecycle`;
    const { items } = (await api.ask("GET", `${path}?limit=200`)).body;
    const about = (kind: string) => items.filter((one: { kind: string }) => one.kind === kind);
    expect(about("decommission")).toMatchObject([
      { what: "drain", status: "failed_retryable", by: "admin", message: "moves; away", id: drained.decommission_id },
    ]);
    expect(about("stage")).toMatchObject([
      { what: "drain_node", operation_id: drained.decommission_id, message: "away" },
    ]);
    expect(about("task")).toMatchObject([
      { what: "allocation.grant_user", status: "failed", message: "no_space: full" },
    ]);
    expect(about("override")).toMatchObject([{ what: "repair", status: "stands", by: "operator:ann", message: "x" }]);
    expect(about("event").map((one: { what: string }) => one.what)).toEqual(
      expect.arrayContaining(["created", "cordoned", "health_override_set"]),
    );
    const times = items.map((one: { at: string }) => one.at);
    expect(times).toEqual(times.toSorted());
    expect(JSON.stringify(items)).not.toContain("AAAAkey");
    const headers = { authorization: `Bearer ${api.viewer}` };
    const csv = await (await fetch(`${await api.listen()}${path}/csv`, { headers })).text();
    const lines = csv.trimEnd().split("\r\n");
    expect(lines[0]).toBe("at,kind,id,operation_id,what,status,by,ended_at,message");
    expect(lines).toHaveLength(items.length + 1);
    expect(csv).toContain(`,"'=1+1, loud"`);
    expect(csv).not.toContain("AAAAkey");
    const failed = (await api.ask("GET", `/api/v1/admin/decommissions?status=failed&node_id=${id}`)).body.items;
    expect(failed).toMatchObject([{ decommission_id: drained.decommission_id, status: "failed_retryable" }]);
    const unknown = `${NODES}/${randomUUID()}/lifecycle`;
    for (const one of [unknown, `${unknown}/csv`]) expect((await api.ask("GET", one)).status).toBe(404);
  });

  describe("a cordon", () => {
    it("keeps work off with its reason and owner until a person lifts it, and reports each change once", async () => {
      const id = await active("c-1");
      for (let times = 0; times < 2; times += 1) await ask(id, "cordon");
      const shown = await node(id);
      expect(shown).toMatchObject({ status: "active", cordon_reason: REASON.reason, cordon_owner: "operator:admin" });
      expect(shown.unschedulable_reasons).toContain(`cordoned: ${REASON.reason}`);
      expect(await ask(id, "uncordon", { reason: "it is quiet" })).toMatchObject({
        status: 200,
        body: { node_id: id, cordon_reason: null, cordon_owner: null },
      });
      await ask(id, "uncordon");
      expect(await eventsOf(id, "node.cordon.changed")).toMatchObject([
        { cordoned: true, by: "operator:admin", reason: REASON.reason },
        { cordoned: false, by: "operator:admin", reason: "it is quiet" },
      ]);
    });

    it("by a person outlives one by an operation, which only the operation lifts (decision N1)", async () => {
      const [both, operations] = [await retired("c-2"), await retired("c-3")];
      expect((await ask(operations, "uncordon")).problem.detail).toContain("activate the node once it is retired");
      expect((await ask(both, "cordon")).status).toBe(200);
      for (const id of [both, operations]) await ask(id, "activate");
      expect([(await node(both)).cordon_owner, (await node(operations)).cordon_owner]).toEqual([
        "operator:admin",
        null,
      ]);
    });
  });

  it("a deleted node is listed only on request", async () => {
    const [there, gone] = [await active("d-1"), await retired("d-2")];
    await inTx(async (tx) => {
      const operationId = randomUUID();
      await moveNode(tx, gone, { from: "retired", to: "removing", owner: "remove", operationId }, "old");
      await moveNode(tx, gone, { from: "removing", to: "deleted", owner: "remove" }, "old");
    });
    const listed = async (query: string) => {
      const { items } = (await api.ask("GET", `${NODES}?limit=200${query}`)).body as { items: { id: NodeId }[] };
      return [there, gone].filter((id) => items.some((one) => one.id === id));
    };
    expect(await listed("")).toEqual([there]);
    expect(await listed("&hostname=d-2")).toEqual([]);
    expect(await listed("&status=deleted")).toEqual([gone]);
    expect(await listed("&include_deleted=true")).toEqual([there, gone]);
    expect(await node(gone)).toMatchObject({ id: gone, status: "deleted" });
  });

  it("a remove names the machine that it leaves deployed, if one is deployed", async () => {
    const [left, bare, released] = [await retired("r-1", 6), await retired("r-2"), await retired("r-3", 6)];
    const [byOthers, deleted] = [await retired("r-4", 4), await retired("r-5", 6)];
    await db().update(maasMachines).set({ absent: true }).where(eq(maasMachines.systemId, "r-5"));
    await inTx(async (tx) => {
      const decommissionId = WorkflowId.parse(randomUUID());
      const ended = { kind: "release", status: "completed", stage: "power_off_maas_node", input: {} } as const;
      await tx.insert(workflows).values({ id: decommissionId, ...ended, requestedBy: "ann" });
      const about = {
        nodeId: released,
        hostname: "r-3",
        mode: "release",
        reason: "old",
        priorStatus: "retired",
      } as const;
      await tx.insert(nodeDecommissions).values({ decommissionId, siteId, maasSystemId: "r-3", ...about });
      await recordMachineReleased(tx, decommissionId, 0);
    });
    const warning = async (id: NodeId) => (await ask(id, "remove")).body.warning;
    expect(await warning(released)).toBeNull();
    expect(await warning(left)).toMatch(
      /^Machine r-1 of r-1 stays deployed in MAAS,.*run release-node .* once the node is removed/,
    );
    for (const id of [bare, byOthers, deleted]) expect(await warning(id)).toBeNull();
  });

  it("a node whose host never came is removed, its command is revoked, and it cannot be activated", async () => {
    const [sku] = await db().select().from(skus);
    const made = await api.ask("POST", NODES, {
      onboarding_mode: "manual",
      hostname: "never-came",
      sku_id: sku?.id,
      region_code: "r1",
    });
    const id = NodeId.parse(made.body.node_id);
    expect((await ask(id, "drain")).problem.detail).toContain("remove it");
    expect(await ask(id, "remove")).toMatchObject({
      status: 202,
      body: { node_id: id, mode: "remove", warning: null },
    });
    expect(await node(id)).toMatchObject({ status: "retired" });
    const tokens = await db()
      .select()
      .from(enrollmentTokens)
      .where(inArray(enrollmentTokens.nodeId, [id]));
    expect(tokens.map((token) => token.revokedAt === null)).toEqual([false]);
    expect((await api.ask("POST", `${NODES}/${id}/bootstrap-command`, {})).problem.code).toBe("conflict");
  });
});
