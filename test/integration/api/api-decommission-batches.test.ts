/** Tests which nodes a request for a batch of decommissions takes and refuses (lifecycle 5.10). */
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { admitDecommissions } from "../../../hub/db/queries/admission.ts";
import { allocations } from "../../../hub/db/schema/index.ts";
import { MOST_NODES } from "../../../shared/api/node-selection.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { ProfileId, SiteId } from "../../../shared/ids.ts";
import { onboardedWith } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { addActiveNode, addMachine, retireNode } from "../../support/site-nodes.ts";

const DECOMMISSIONS = "/api/v1/admin/decommissions";
const BATCHES = "/api/v1/admin/decommission-batches";
const reason = "the rack moves";
const drain = { mode: "drain", reason } as const;

describe("the API of batches of decommissions", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let profileId: ProfileId;
  let racks = 0;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    siteId = SiteId.parse(seeded.siteId);
    profileId = ProfileId.parse(seeded.profileId);
  });
  afterAll(() => api.close());

  const query = async (text: string, values: unknown[] = []) =>
    (await api.database.database.pool.query(text, values)).rows;
  const post = (path: string, body: object, headers = {}) => api.ask("POST", path, body, headers);
  const create = (body: object, headers = {}) =>
    post(`${DECOMMISSIONS}/batch`, { site_id: siteId, operation: drain, ...body }, headers);
  const newRack = (): string => {
    racks += 1;
    return `r${racks}u`;
  };
  const nodes = (hosts: number, rack = newRack()): Promise<NodeId[]> =>
    api.database.database.inTx(async (tx) => {
      const ids: NodeId[] = [];
      for (let n = 1; n <= hosts; n += 1) ids.push(await addActiveNode(tx, { siteId, hostname: `${rack}${n}` }));
      return ids;
    });
  const retire = (id: NodeId) => api.database.database.inTx((tx) => retireNode(tx, id));
  const codesOf = (body: { refusals: { node_id: string; error_code: string }[] }) =>
    Object.fromEntries(body.refusals.map((one) => [one.node_id, one.error_code]));

  async function rowsOfAllTables(): Promise<Record<string, number>> {
    const tables = await query("select tablename as name from pg_tables where schemaname = 'public' order by 1");
    const counts: Record<string, number> = {};
    for (const { name } of tables)
      if (name !== "audit_logs") counts[name] = (await query(`select count(*)::int as n from ${name}`))[0].n;
    return counts;
  }
  const statesOf = (ids: readonly NodeId[]) =>
    query("select id, status, cordon_reason, operation_id, updated_at from nodes where id = any($1) order by id", [
      ids,
    ]);

  it("takes the named nodes, and begins one decommission for each with the options of the mode", async () => {
    const ids = await nodes(3);
    const operation = { mode: "soft_reset", storage_cleanup: "local", reason, agent_wait_seconds: 30 };
    const created = await create({ operation, node_ids: ids });
    expect(created).toMatchObject({ status: 202, body: { mode: "soft_reset", matched: 3, accepted: 3, refused: 0 } });
    const { batch_id: batch, decommissions } = created.body;
    const list = await api.ask("GET", `${DECOMMISSIONS}?batch_id=${batch}`);
    expect(list.body.items.map((one: { node_id: string }) => one.node_id).toSorted()).toEqual(ids.toSorted());
    for (const one of list.body.items) expect(one).toMatchObject({ batch_id: batch, mode: "soft_reset", reason });
    const inputs = await query("select input from workflows where batch_id = $1", [batch]);
    for (const { input } of inputs)
      expect(input).toMatchObject({ storage_cleanup: "local", agent_wait_seconds: 30, force: true });
    const shown = (await api.ask("GET", `${BATCHES}/${batch}`)).body;
    expect(shown).toMatchObject({ kind: "decommission", mode: "soft_reset", total: 3, counts: { pending: 3 } });
    expect(shown).toMatchObject({ operation, filter: null, refused: 0, refusals: [], failures: [], done: false });
    const audited = await query("select action, target, details from audit_logs where reason = $1 and target like $2", [
      reason,
      "nodes/%",
    ]);
    expect(audited.map((one) => one.target).toSorted()).toEqual(ids.map((id) => `nodes/${id}`).toSorted());
    for (const { action, target, details } of audited) {
      const own = decommissions.find((one: { node_id: string }) => target === `nodes/${one.node_id}`);
      expect({ action, details }).toMatchObject({
        action: "decommission.start",
        details: { batch_id: batch, decommission_id: own.decommission_id, prior: { status: "active" } },
      });
    }
  });

  it("refuses single nodes with the code of a request for the node alone, and takes the others", async () => {
    const [free, held, let_, retired] = (await nodes(4)) as [NodeId, NodeId, NodeId, NodeId];
    const [stranger, elsewhere] = [randomUUID(), SiteId.parse((await seedApi(api, "dc2")).siteId)];
    const abroad = await api.database.database.inTx((tx) => addActiveNode(tx, { siteId: elsewhere, hostname: "x1" }));
    await post(`/api/v1/admin/nodes/${held}/drain`, { reason });
    await retire(retired);
    await api.database.database.db.insert(allocations).values({
      nodeId: let_,
      hostname: "h",
      generation: 0,
      tenant: "acme",
      loginUser: "alice",
      sshKeys: [],
      grantsRoot: false,
      labels: {},
      status: "active",
      createdBy: "ann",
    });
    const { status, body } = await create({ node_ids: [free, held, let_, retired, stranger, abroad] });
    expect({ status, body }).toMatchObject({ status: 202, body: { matched: 6, accepted: 1, refused: 5 } });
    expect(body.decommissions).toMatchObject([{ node_id: free, node_status: "active" }]);
    expect(codesOf(body)).toEqual({
      [held]: "operation_exists",
      [let_]: "allocation_exists",
      [retired]: "conflict",
      [stranger]: "not_found",
      [abroad]: "not_found",
    });
    const shown = (await api.ask("GET", `${BATCHES}/${body.batch_id}`)).body;
    expect(shown).toMatchObject({ total: 1, refused: 5, refusals: body.refusals });
    const [tenant] = await query("select status from allocations where node_id = $1", [let_]);
    expect(tenant).toEqual({ status: "active" });
  });

  it("plans exactly what a request does, and changes no row of any table", async () => {
    const rack = newRack();
    const ids = await nodes(3, rack);
    await retire(ids[0] as NodeId);
    const filter = { hostname_prefix: rack };
    const [rows, states] = [await rowsOfAllTables(), await statesOf(ids)];
    const plan = await create({ filter, plan: true });
    expect(plan).toMatchObject({ status: 202, body: { batch_id: null, matched: 3, accepted: 2, refused: 1 } });
    expect(await rowsOfAllTables()).toEqual(rows);
    expect(await statesOf(ids)).toEqual(states);
    const begun = (await create({ filter, expected_count: 3 })).body;
    const withoutIds = begun.decommissions.map((one: object) => ({ ...one, decommission_id: null }));
    expect({ ...begun, batch_id: null, decommissions: withoutIds }).toEqual(plan.body);
    const again = await create({ filter, plan: true });
    expect(again.body, "a plan may refuse every node").toMatchObject({ matched: 3, accepted: 0, refused: 3 });
  });

  it("takes the nodes that match every field of a filter, and deleted nodes only if the filter names that status", async () => {
    const rack = newRack();
    const [first, second, third] = (await nodes(3, rack)) as [NodeId, NodeId, NodeId];
    await nodes(1);
    await query("update nodes set sku = 'other' where id = $1", [first]);
    await query("update nodes set status = 'quarantined' where id = $1", [second]);
    await query("update nodes set status = 'deleted' where id = $1", [third]);
    const matched = async (filter: object) => {
      const { body } = await create({ filter: { hostname_prefix: rack, ...filter }, plan: true });
      const taken = [...body.decommissions, ...body.refusals].map((one: { node_id: string }) => one.node_id);
      expect(body.matched).toBe(taken.length);
      return taken.toSorted();
    };
    expect(await matched({})).toEqual([first, second].toSorted());
    expect(await matched({ status: "quarantined" })).toEqual([second]);
    expect(await matched({ status: "deleted" })).toEqual([third]);
    expect(await matched({ sku_id: "other" })).toEqual([first]);
    expect(await matched({ sku_id: "other", status: "quarantined" })).toEqual([]);
    const listed = await api.ask("GET", `/api/v1/admin/nodes?hostname_prefix=${rack}`);
    expect(listed.body.items.map((one: { id: string }) => one.id).toSorted()).toEqual([first, second].toSorted());
    expect((await create({ filter: { hostname_prefix: `${rack}%` }, plan: true })).problem.code).toBe(
      "validation_failed",
    );
  });

  it("begins nothing by a filter that matches more or fewer nodes than the request expects", async () => {
    const rack = newRack();
    const ids = await nodes(3, rack);
    const [rows, states] = [await rowsOfAllTables(), await statesOf(ids)];
    for (const mode of ["full_decommission", "reimage", "drain"])
      for (const expected_count of [2, 4]) {
        const refused = await create({
          operation: { mode, reason },
          filter: { hostname_prefix: rack },
          expected_count,
        });
        expect(refused.problem).toMatchObject({ status: 409, code: "count_mismatch" });
        expect(refused.problem.detail).toContain(`matches 3 nodes, but the request expects ${expected_count}`);
      }
    expect(await rowsOfAllTables()).toEqual(rows);
    expect(await statesOf(ids)).toEqual(states);
  });

  it("takes one of two nodes at the same BMC, and the other one only if the first is refused", async () => {
    const ids = await nodes(3);
    const rack = `r${racks}u`;
    await api.database.database.inTx(async (tx) => {
      for (const [n, nodeId] of ids.entries()) {
        const hostname = `${rack}${n + 1}`;
        await addMachine(tx, { siteId, hostname, nodeId }, { status: 6 });
        await onboardedWith(tx, { nodeId, siteId, profileId, hostname });
      }
    });
    // A batch claims the BMC for its nodes in the order of their ids, so the retired node claims it first.
    const [retired, first, second] = ids.toSorted() as [NodeId, NodeId, NodeId];
    await retire(retired);
    const operation = { mode: "reimage", erase: "secure", reason };
    const alone = (await create({ operation, node_ids: [first, retired], plan: true })).body;
    expect(codesOf(alone)).toEqual({ [retired]: "conflict" });
    const { body } = await create({ operation, node_ids: [first, second, retired] });
    expect(body).toMatchObject({ accepted: 1, refused: 2 });
    const other = body.decommissions[0].node_id === first ? second : first;
    expect(codesOf(body)).toEqual({ [retired]: "conflict", [other]: "operation_exists" });
    const held = await query("select workflow_id from workflow_subjects where subject like $1 or subject like $2", [
      `bmc:${siteId}/%`,
      `node:${retired}%`,
    ]);
    expect(held).toEqual([{ workflow_id: body.decommissions[0].decommission_id }]);
  });

  it("begins with as many SQL statements for many nodes as for few", async () => {
    const counts = new Map<unknown, number>();
    const { query: original } = Client.prototype;
    const statementsFor = async (hosts: number): Promise<number> => {
      const node_ids = await nodes(hosts);
      const operation = { mode: "soft_reset", storage_cleanup: "none", reason };
      counts.clear();
      expect((await create({ operation, node_ids, plan: true })).body).toMatchObject({ accepted: hosts });
      return Math.max(...counts.values());
    };
    Client.prototype.query = function counted(this: Client, ...args: unknown[]) {
      counts.set(this, (counts.get(this) ?? 0) + 1);
      return Reflect.apply(original, this, args);
    } as typeof original;
    try {
      expect(await statementsFor(20)).toBe(await statementsFor(2));
    } finally {
      Client.prototype.query = original;
    }
  });

  it("begins nothing by a filter that matches more nodes than a batch may have, not even as a plan", async () => {
    const rack = newRack();
    const [id] = (await nodes(1, rack)) as [NodeId];
    await query(
      `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
       select gen_random_uuid(), $2 || 'more' || g, site_id, sku, gpus_total, region_code, status, onboarding_mode
       from nodes, generate_series(1, $3::int) g where id = $1`,
      [id, rack, MOST_NODES],
    );
    const before = await rowsOfAllTables();
    const filter = { hostname_prefix: rack };
    const plan = await create({ filter, plan: true });
    expect(plan.problem).toMatchObject({ status: 409, code: "conflict", errors: [{ pointer: "/filter" }] });
    expect((await create({ filter, expected_count: MOST_NODES })).problem.code).toBe("count_mismatch");
    expect(await rowsOfAllTables()).toEqual(before);
  });

  it("refuses a request that selects no nodes clearly, or that can begin on no node", async () => {
    const [id] = (await nodes(1)) as [NodeId];
    for (const [body, pointer] of [
      [{}, "/node_ids"],
      [{ node_ids: [id], filter: {} }, "/node_ids"],
      [{ node_ids: [id, id] }, "/node_ids"],
      [{ node_ids: [id], expected_count: 1 }, "/expected_count"],
      [{ filter: {} }, "/expected_count"],
      [{ filter: { shelf: "r1" }, expected_count: 1 }, "/filter/shelf"],
      [{ node_ids: [id], operation: { mode: "soft_reset", erase: "none", reason } }, "/operation/erase"],
      [{ node_ids: [id], operation: { mode: "drain" } }, "/operation/reason"],
    ] as const) {
      const { status, problem } = await create(body);
      expect({ body, status, pointer: problem.errors?.[0]?.pointer }).toMatchObject({ status: 400, pointer });
    }
    expect((await create({ site_id: randomUUID(), node_ids: [id] })).problem.code).toBe("reference_unknown");
    await retire(id);
    const before = await rowsOfAllTables();
    const none = await create({ node_ids: [id] });
    expect(none.problem).toMatchObject({ status: 409, code: "conflict" });
    expect(none.problem.errors).toMatchObject([{ pointer: "/node_ids/0" }]);
    expect(await rowsOfAllTables()).toEqual(before);
  });

  it("creates one batch per key under repeated requests", async () => {
    const rack = newRack();
    await nodes(2, rack);
    const body = { filter: { hostname_prefix: rack }, expected_count: 2 };
    const key = { "idempotency-key": `drain-${rack}` };
    const [first, second] = await Promise.all([create(body, key), create(body, key)]);
    expect(first.status).toBe(202);
    expect(second.body).toEqual(first.body);
    expect(await query("select 1 from workflows where batch_id = $1", [first.body.batch_id])).toHaveLength(2);
  });

  it("lets two requests for the same nodes at once take each node once", async () => {
    const ids = await nodes(12);
    const [first, second] = await Promise.all([create({ node_ids: ids }), create({ node_ids: ids.toReversed() })]);
    const [won, lost] = first.status === 202 ? [first, second] : [second, first];
    expect(won).toMatchObject({ status: 202, body: { accepted: 12 } });
    expect(lost.problem).toMatchObject({ code: "conflict" });
    expect(lost.problem.errors?.every(({ message }) => message.startsWith("operation_exists"))).toBe(true);
  });

  it("is cancelled as a whole before it began, and its nodes are free again", async () => {
    const ids = await nodes(2);
    const { batch_id: batch } = (await create({ node_ids: ids })).body;
    const onboardings = `/api/v1/admin/onboarding-batches/${batch}`;
    expect((await api.ask("GET", onboardings)).problem.code, "a batch has one kind").toBe("not_found");
    expect((await post(`${onboardings}/cancel`, { reason })).problem.code).toBe("not_found");
    const cancelled = await post(`${BATCHES}/${batch}/cancel`, { reason });
    expect(cancelled.body).toMatchObject({ batch_id: batch, applied: 2, skipped: 0 });
    for (const one of cancelled.body.results) expect(one).toMatchObject({ onboarding_id: null, status: "cancelled" });
    expect((await api.ask("GET", `${BATCHES}/${batch}`)).body).toMatchObject({ cancelled: 2, done: true });
    const audits = await query("select target, details from audit_logs where action = 'cancelDecommissionBatch'");
    expect(audits).toEqual([{ target: `decommission-batches/${batch}`, details: { applied: 2, skipped: 0 } }]);
    expect(await create({ node_ids: ids })).toMatchObject({ status: 202, body: { accepted: 2 } });
  });

  it("is paused and resumed by a person with a reason, and says meanwhile who paused it and why", async () => {
    const ids = await nodes(3);
    const [begun] = ids;
    const { batch_id: batch } = (await create({ node_ids: ids, stop_after_failures: 2 })).body;
    expect((await api.ask("GET", `${BATCHES}/${batch}`)).body).toMatchObject({ paused: null, stop_after_failures: 2 });
    expect((await post(`${BATCHES}/${batch}/resume`, { reason })).problem).toMatchObject({ code: "conflict" });
    const paused = (await post(`${BATCHES}/${batch}/pause`, { reason: "lunch" })).body;
    expect(paused.paused).toMatchObject({
      by: "admin",
      reason: "lunch",
      next_action: expect.stringContaining("resume"),
    });
    const again = (await post(`${BATCHES}/${batch}/pause`, { reason })).problem;
    expect(again).toMatchObject({ code: "conflict", detail: expect.stringContaining("lunch") });
    await query(
      `update workflows w set started_at = now() from node_decommissions d
       where d.decommission_id = w.id and d.node_id = $1 and w.batch_id = $2`,
      [begun, batch],
    );
    const admit = async () => {
      const rows = await api.database.database.inTx((tx) => admitDecommissions(tx, "drain"));
      return rows.filter((row) => row.batchId === batch).length;
    };
    await query("update workflows set status = 'cancelled' where batch_id <> $1", [batch]);
    expect(await admit(), "an operation that a person continues after it had begun").toBe(1);
    expect(await admit()).toBe(0);
    const waits = async () => (await api.ask("GET", `${DECOMMISSIONS}?batch_id=${batch}&status=pending`)).body.items;
    for (const one of await waits()) expect(one.waiting_for).toContain("paused by admin: lunch");
    expect(await waits()).toHaveLength(2);
    const resumed = (await post(`${BATCHES}/${batch}/resume`, { reason: "back" })).body;
    expect(resumed).toMatchObject({ paused: null, counts: { pending: 2, running: 1 } });
    for (const one of await waits()) expect(one.waiting_for).toBeNull();
    await query("update workflows set status = 'cancelled' where batch_id = $1 and status = 'running'", [batch]);
    const audits = await query(
      "select details from audit_logs where action = 'pauseDecommissionBatch' and outcome = 'done'",
    );
    expect(audits).toMatchObject([{ details: { prior: { paused: null }, expected: { paused: { by: "admin" } } } }]);
    await post(`${BATCHES}/${batch}/pause`, { reason });
    expect(await admit()).toBe(0);
    await post(`${BATCHES}/${batch}/resume`, { reason });
    expect(await admit()).toBe(2);
    const late = (await post(`${BATCHES}/${batch}/pause`, { reason })).problem;
    expect(late).toMatchObject({
      code: "conflict",
      detail: expect.stringContaining("No operation of the batch waits"),
    });
    expect((await post(`${BATCHES}/${randomUUID()}/pause`, { reason })).problem.code).toBe("not_found");
  });

  it("lists batches of decommissions page by page, newest first, apart from batches of onboardings", async () => {
    const all = (await api.ask("GET", `${BATCHES}?limit=100`)).body.items;
    expect(all.length).toBeGreaterThan(2);
    for (const one of all) expect(one).toMatchObject({ kind: "decommission", site_id: siteId });
    const first = (await api.ask("GET", `${BATCHES}?limit=1&site_id=${siteId}`)).body;
    const rest = (await api.ask("GET", `${BATCHES}?limit=100&cursor=${first.next_cursor}`)).body;
    expect([...first.items, ...rest.items]).toEqual(all);
    expect((await api.ask("GET", "/api/v1/admin/onboarding-batches")).body.items).toEqual([]);
  });
});
