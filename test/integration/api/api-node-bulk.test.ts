/** One verb on many nodes: the filter with the expected number, the plan, and the refused nodes grouped by reason. */
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../../hub/db/client.ts";
import type { Asker, OnCommitted } from "../../../hub/db/committed.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { quietLog } from "../../support/log.ts";
import { addActiveNode, addNode, addNodeInService, retireNode } from "../../support/site-nodes.ts";
import { until } from "../../support/until.ts";

const BULK = "/api/v1/admin/nodes/bulk";
const NODES = "/api/v1/admin/nodes";
const BATCH = "/api/v1/admin/decommissions/batch";
const reason = "the rack is warm";

describe("a verb on many nodes", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let otherSite: SiteId;
  /** The moves of nodes that the hub tells its log, each with the request that asked for it. */
  const moved: { nodeId: string; asker: Asker | null }[] = [];
  /** More nodes than the hub changes in one transaction. */
  const ACTIVE = 60;
  beforeAll(async () => {
    const onCommitted: OnCommitted = (changes, asker) => {
      for (const change of changes) if (change.what === "node_moved") moved.push({ nodeId: change.nodeId, asker });
    };
    const about = { poolSize: 10, applicationName: "bulk", log: quietLog, onCommitted };
    api = await startApi({ open: async (url) => openDatabase({ url, ...about }) });
    siteId = SiteId.parse((await seedApi(api)).siteId);
    otherSite = SiteId.parse((await seedApi(api, "dc2")).siteId);
    await api.database.database.inTx(async (tx) => {
      for (let n = 0; n < ACTIVE; n += 1) await addNodeInService(tx, { siteId, hostname: `c${100 + n}` });
      for (let n = 0; n < 3; n += 1) await addNode(tx, { siteId, hostname: `d${100 + n}` });
      await retireNode(tx, await addActiveNode(tx, { siteId, hostname: "e100" }));
      await addActiveNode(tx, { siteId: otherSite, hostname: "c100" });
    });
  });
  afterAll(() => api.close());

  const bulk = (verb: string, rest: object, headers: Record<string, string> = {}) =>
    api.ask("POST", BULK, { site_id: siteId, action: { verb, reason }, ...rest }, headers);
  const query = async (text: string, values: unknown[] = []) =>
    (await api.database.database.pool.query(text, values)).rows;
  /** The state of all nodes that a verb may change, with the number of rows in each table except the audit of the request itself. */
  async function everything() {
    const { audit_logs: _, idempotency_keys: __, ...counts } = await api.counts();
    const [events] = await query("select count(*)::int as n from domain_events");
    return [await query("select * from nodes order by id"), counts, events];
  }
  const statuses = async () =>
    Object.fromEntries(
      (await query("select status, count(*)::int as n from nodes where site_id = $1 group by 1", [siteId])).map(
        ({ status, n }) => [status, n],
      ),
    );
  const audited = (action: string) =>
    query(
      "select target, reason, details, request_id from audit_logs where action = $1 and outcome = 'done' order by target",
      [action],
    );

  const VERBS = ["cordon", "uncordon", "quarantine", "lift_quarantine", "activate"];
  it.each([...VERBS, "set_location"])(
    "a plan of %s says what each node would get, and touches nothing",
    async (verb) => {
      const before = await everything();
      const action = { verb, reason, ...(verb === "set_location" ? { location: { rack: "r9" } } : {}) };
      const { status, body, problem } = await bulk(verb, { action, filter: {}, plan: true });
      expect(status, JSON.stringify(problem)).toBe(200);
      const { matched, applied, refused, nodes, refusals } = body;
      expect({ matched, plan: body.plan, verb: body.verb }).toEqual({ matched: ACTIVE + 4, plan: true, verb });
      expect(nodes).toHaveLength(applied);
      expect(refusals).toHaveLength(refused);
      expect(applied + refused).toBe(matched);
      expect(await everything()).toEqual(before);
    },
  );

  it("groups the refused nodes of a plan by reason, and shows the change of the others", async () => {
    const { body } = await bulk("quarantine", { filter: {}, plan: true });
    expect(body).toMatchObject({ applied: ACTIVE, refused: 4 });
    expect(body.nodes[0]).toMatchObject({
      node_status: "active",
      prior: { status: "active" },
      expected: { status: "quarantined" },
    });
    expect(body.refused_by).toEqual([
      { error_code: "conflict", reason: expect.stringMatching(/<host> is enrolling and cannot/), count: 3 },
      { error_code: "conflict", reason: expect.stringMatching(/<host> is retired and cannot/), count: 1 },
    ]);
    expect(body.refusals.map(({ hostname }: { hostname: string }) => hostname).toSorted()).toEqual([
      "d100",
      "d101",
      "d102",
      "e100",
    ]);
  });

  it("changes nothing if the filter matches another number of nodes than the request expects", async () => {
    const filter = { status: ["active", "offline"], hostname_prefix: "c1" };
    const before = await everything();
    for (const wrong of [ACTIVE - 1, ACTIVE + 1])
      for (const plan of [false, true])
        expect((await bulk("quarantine", { filter, expected_count: wrong, plan })).problem).toMatchObject({
          ...{ status: 409, code: "count_mismatch" },
          errors: [{ pointer: "/expected_count", message: `the filter matches ${ACTIVE} nodes` }],
        });
    expect(await everything()).toEqual(before);
  });

  it.each([
    ["a filter without the number", { filter: {} }, "/expected_count"],
    ["neither ids nor a filter", {}, "/node_ids"],
    ["ids and a filter", { node_ids: [randomUUID()], filter: {}, expected_count: 1 }, "/node_ids"],
    ["ids with a number", { node_ids: [randomUUID()], expected_count: 1 }, "/expected_count"],
    ["1,001 ids", { node_ids: Array.from({ length: 1001 }, () => randomUUID()) }, "/node_ids"],
    ["a number above 1,000", { filter: {}, expected_count: 1001 }, "/expected_count"],
    [
      "a location of nothing",
      { action: { verb: "set_location", reason, location: {} }, filter: {} },
      "/action/location",
    ],
  ])("refuses %s", async (_, rest, pointer) => {
    const { problem } = await bulk("cordon", rest);
    expect(problem).toMatchObject({ status: 400, code: "validation_failed" });
    expect(problem.errors?.map((one) => one.pointer)).toContain(pointer);
  });

  it("refuses a site that does not exist, and a filter that matches more than 1,000 nodes", async () => {
    const nowhere = await bulk("cordon", { site_id: randomUUID(), filter: {}, plan: true });
    expect(nowhere.problem).toMatchObject({ code: "reference_unknown", errors: [{ pointer: "/site_id" }] });
    await query(
      `insert into nodes select (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(), 'hostname', 'f' || n))).*
       from nodes c, generate_series(1, 1000) n where c.hostname = 'c100' and c.site_id = $1`,
      [otherSite],
    );
    const { problem } = await bulk("cordon", { site_id: otherSite, filter: {}, plan: true });
    expect(problem).toMatchObject({
      code: "conflict",
      errors: [{ pointer: "/filter", message: "matches 1001 nodes" }],
    });
  });

  it("acts only at the caller's sites, and only on nodes of the named site", async () => {
    const token = await apiToken(api.database, { name: "dc2", role: "operator", sites: [otherSite], tenant: null });
    const authorization = `Bearer ${token}`;
    const foreign = await bulk("cordon", { filter: { hostname_prefix: "c100" }, expected_count: 1 }, { authorization });
    expect(foreign.problem).toMatchObject({ status: 404, code: "not_found" });
    const [node] = await query("select id from nodes where hostname = 'c100' and site_id = $1", [siteId]);
    const { body } = await bulk("cordon", { site_id: otherSite, node_ids: [node.id] }, { authorization });
    expect(body).toMatchObject({ applied: 0, nodes: [], refused_by: [{ error_code: "not_found", count: 1 }] });
    expect(body.refusals).toEqual([
      { node_id: node.id, hostname: null, error_code: "not_found", message: expect.stringContaining(node.id) },
    ]);
    expect(await query("select id from nodes where cordon_reason is not null and status = 'active'")).toEqual([]);
  });

  it("applies the verb to every matching node, with an audit entry for each, and repeats the answer for one key", async () => {
    const filter = { status: ["active", "offline"], hostname_prefix: "c1" };
    const headers = { "idempotency-key": "warm-1" };
    const first = await bulk("quarantine", { filter, expected_count: ACTIVE }, headers);
    expect(first.body).toMatchObject({ plan: false, matched: ACTIVE, applied: ACTIVE, refused: 0, refused_by: [] });
    expect(await statuses()).toEqual({ quarantined: ACTIVE, enrolling: 3, retired: 1 });
    const requestId = first.headers.get("x-request-id");
    const entries = await audited("quarantineNode");
    const change = { prior: { status: "active" }, expected: { status: "quarantined" } };
    const ids = first.body.nodes.map((node: { node_id: string }) => `nodes/${node.node_id}`).toSorted();
    expect(entries).toEqual(ids.map((target: string) => ({ target, reason, details: change, request_id: requestId })));
    const own = (await audited("applyToNodes")).filter((one) => one.request_id === requestId);
    const details = { verb: "quarantine", plan: false, filter, matched: ACTIVE, applied: ACTIVE, refused: 0 };
    expect(own).toEqual([{ target: `maas-sites/${siteId}`, reason, details, request_id: requestId }]);
    const told = moved.filter(({ asker }) => asker?.name === "admin" && asker.requestId === requestId);
    expect(told.map(({ nodeId }) => `nodes/${nodeId}`).toSorted()).toEqual(ids);
    const after = await everything();
    const again = await bulk("quarantine", { filter, expected_count: ACTIVE }, headers);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    const anew = await bulk("quarantine", { filter, expected_count: ACTIVE });
    expect(anew.problem.code).toBe("count_mismatch");
    expect(await everything()).toEqual(after);
    expect(await audited("quarantineNode")).toHaveLength(ACTIVE);
  });

  it("lifts the quarantine of the nodes that have one, and says of the others why not", async () => {
    const { body } = await bulk("lift_quarantine", { filter: {}, expected_count: ACTIVE + 4 });
    expect(body).toMatchObject({ matched: ACTIVE + 4, applied: ACTIVE, refused: 4 });
    expect(await statuses()).toEqual({ active: ACTIVE, enrolling: 3, retired: 1 });
    expect(body.refused_by.map(({ count }: { count: number }) => count)).toEqual([3, 1]);
  });

  it("activates retired nodes, and names the nodes of other statuses", async () => {
    const filter = { hostname_prefix: "e1" };
    const { body } = await bulk("activate", { filter, expected_count: 1 });
    expect(body).toMatchObject({
      applied: 1,
      nodes: [{ prior: { status: "retired" }, expected: { status: "active" } }],
    });
    expect(await statuses()).toEqual({ active: ACTIVE + 1, enrolling: 3 });
    const enrolling = await bulk("activate", { filter: { status: "enrolling" }, expected_count: 3 });
    expect(enrolling.body).toMatchObject({
      applied: 0,
      refused: 3,
      refused_by: [{ error_code: "conflict", count: 3 }],
    });
  });

  it("cordons and uncordons many nodes", async () => {
    const filter = { search: "c10" };
    const cordoned = await bulk("cordon", { filter, expected_count: 10 });
    expect(cordoned.body.nodes[0]).toMatchObject({
      prior: { cordon_reason: null, cordon_owner: null },
      expected: { cordon_reason: reason },
    });
    const cordons = () => query("select hostname from nodes where cordon_reason = $1", [reason]);
    expect(await cordons()).toHaveLength(10);
    const lifted = await bulk("uncordon", { filter, expected_count: 10 });
    expect(lifted.body).toMatchObject({ applied: 10, refused: 0 });
    expect(await cordons()).toEqual([]);
    expect(await audited("cordonNode")).toHaveLength(10);
    expect(await audited("uncordonNode")).toHaveLength(10);
  });

  it("sets room and rack of many nodes, keeps the unit of a node that stays in its rack, and filters by the rack", async () => {
    await query("update nodes set rack = 'r1', unit = 4 where hostname in ('d100', 'd101') and site_id = $1", [siteId]);
    await query("update nodes set rack = 'r2', unit = 7 where hostname = 'd102' and site_id = $1", [siteId]);
    const location = { room: "A", rack: "r1" };
    const action = { verb: "set_location", reason, location };
    const { body } = await bulk("", { action, filter: { search: "d10" }, expected_count: 3 });
    expect(body).toMatchObject({ applied: 3, refused: 0 });
    const { items } = (await api.ask("GET", `${NODES}?rack=r1&room=A`)).body;
    expect(items.map((one: { hostname: string; location: object }) => [one.hostname, one.location])).toEqual([
      ["d100", { ...location, unit: 4 }],
      ["d101", { ...location, unit: 4 }],
      ["d102", { ...location, unit: null }],
    ]);
    const located = await query("select distinct message, owner from node_events where type = 'located' order by 1");
    expect(located[0]).toEqual({ message: expect.stringMatching(/^room A, rack r1/), owner: "operator:admin" });
    const only = { verb: "set_location", reason, location: { room: null } };
    const moved = await bulk("", { action: only, filter: { room: "A", rack: "r1" }, expected_count: 3 });
    const last = moved.body.nodes.find((one: { hostname: string }) => one.hostname === "d100");
    expect(last).toMatchObject({
      prior: { room: "A", rack: "r1", unit: 4 },
      expected: { room: null, rack: "r1", unit: 4 },
    });
  });

  it("removes a health override from the nodes that have it, and refuses the others and the marks of a repair", async () => {
    const override = `insert into node_health_overrides (node_id, source, reason, set_by, expires_at)
      select id, $1, 'r', 'restore', now() + $2::interval from nodes where site_id = $3 and hostname like $4 returning node_id`;
    const restored = await query(override, ["restore", null, siteId, "c10_"]);
    await query(override, ["restore", "-1 minute", siteId, "c110"]);
    await query(override, ["disk-erase", null, siteId, "c100"]);
    const filter = { health_override: "restore" };
    const list = await api.ask("GET", `${NODES}?health_override=restore&include_total=true&limit=1`);
    expect(list.body.total, "an expired override does not count").toBe(restored.length);
    const action = { verb: "remove_health_override", source: "restore", reason };
    const planned = (await bulk("", { action, filter, plan: true })).body;
    expect(planned).toMatchObject({ matched: 10, applied: 10, refused: 0 });
    expect(planned.nodes[0]).toMatchObject({
      prior: { health_override: "restore" },
      expected: { health_override: null },
    });
    const left = () => query("select source, node_id from node_health_overrides order by source, node_id");
    expect(await left(), "the plan changes nothing").toHaveLength(12);
    expect((await bulk("", { action, filter, expected_count: 9 })).problem).toMatchObject({ code: "count_mismatch" });
    const done = (await bulk("", { action, filter, expected_count: 10 })).body;
    expect(done).toMatchObject({ matched: 10, applied: 10, refused: 0 });
    expect((await left()).map(({ source }) => source)).toEqual(["disk-erase", "restore"]);
    const entries = await audited("removeNodeHealthOverride");
    expect(entries.map(({ target }) => target)).toEqual(restored.map(({ node_id }) => `nodes/${node_id}`).toSorted());
    expect(entries[0]).toMatchObject({ reason, details: { prior: { source: "restore" }, expected: null } });

    const [{ id: claimed }] = await query("select id from nodes where site_id = $1 and hostname = 'c101'", [siteId]);
    await query(override, ["tenant-reported-issue", null, siteId, "c101"]);
    await query(
      `insert into repair_cases (node_id, hostname, mode, state, category, summary, opened_by)
       values ($1, 'c101', 'full', 'reported', 'Other', 's', 'ann')`,
      [claimed],
    );
    const ofRepair = { verb: "remove_health_override", source: "tenant-reported-issue", reason };
    const refused = (await bulk("", { action: ofRepair, filter: { hostname_prefix: "c10" }, expected_count: 10 })).body;
    expect(refused).toMatchObject({ applied: 0, refused: 10 });
    const groups: readonly { reason: string; count: number }[] = refused.refused_by;
    const kinds = groups.map(
      ({ reason: why, count }) => `${count} ${/overrides: [a-z-]+|belongs to repair/.exec(why)?.[0]}`,
    );
    expect(kinds.toSorted()).toEqual(["1 belongs to repair", "1 overrides: disk-erase", "8 overrides: none"]);
    await query("delete from node_health_overrides");
    await query("delete from repair_cases");
  });

  it("gives a deleted node no location", async () => {
    const change = "update nodes set status = 'deleted' where site_id = $1 and hostname = 'c100' returning id";
    const named = { node_ids: (await query(change, [otherSite])).map(({ id }) => id) };
    const action = { verb: "set_location", reason, location: { rack: "r1" } };
    const { body } = await bulk("", { site_id: otherSite, action, ...named });
    expect(body).toMatchObject({ applied: 0, refused_by: [{ error_code: "conflict", count: 1 }] });
    expect(body.refusals[0].message).toMatch(/c100 is deleted/);
  });

  it("does not change a node that leaves the filter while the request waits for it", async () => {
    const filter = { hostname_prefix: "c15", status: "active" };
    const client = new Client({ connectionString: api.database.url });
    await client.connect();
    try {
      await client.query("begin");
      await client.query("update nodes set status = 'offline' where hostname = 'c155' and site_id = $1", [siteId]);
      const asked = bulk("cordon", { filter, expected_count: 10 });
      await until("the request waits for the lock", async () =>
        (
          await query("select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
        ).at(0),
      );
      await client.query("commit");
      const { body } = await asked;
      expect(body).toMatchObject({ matched: 10, applied: 9, refused: 1, refusals: [{ hostname: "c155" }] });
      expect(body.refusals[0].message).toContain("does not match it now");
    } finally {
      await client.end();
    }
    const rows = await query("select hostname from nodes where cordon_reason = $1 and site_id = $2", [reason, siteId]);
    expect(rows).toHaveLength(9);
    await query("update nodes set status = 'active' where hostname = 'c155' and site_id = $1", [siteId]);
  });

  it("takes the same filter for a batch of decommissions, and groups its refused nodes", async () => {
    const filter = { status: ["enrolling", "offline"], rack: "r1" };
    const batch = { site_id: siteId, operation: { mode: "release", reason }, filter, plan: true };
    const { status, body } = await api.ask("POST", BATCH, batch);
    expect(status).toBe(202);
    expect(body).toMatchObject({ matched: 3, accepted: 0, refused: 3 });
    expect(body.refused_by).toEqual([
      { error_code: expect.any(String), reason: expect.stringContaining("<host>"), count: 3 },
    ]);
  });

  it.each([
    ["status", { status: "enrolling" }, 3],
    ["several statuses", { status: ["enrolling", "active"] }, ACTIVE + 4],
    ["sku_id", { sku_id: ["s", "t"] }, ACTIVE + 4],
    ["another SKU", { sku_id: "t" }, 0],
    ["schedulable", { schedulable: true }, 0],
    ["not schedulable", { schedulable: false }, ACTIVE + 4],
    ["rack", { rack: "r1" }, 3],
    ["room", { room: "A" }, 0],
    ["address", { address: "10.0.0.1" }, 0],
    ["failure_class", { failure_class: "upstream_transient" }, 0],
    ["condition", { condition: "agent.healthy:True" }, 0],
    ["search", { search: "D10" }, 3],
    ["hostname_prefix", { hostname_prefix: "c15" }, 10],
    ["hostname", { hostname: "c150" }, 1],
    ["placed", { placed: true }, 2],
    ["not placed", { placed: false }, ACTIVE + 2],
    ["health_override", { health_override: "restore" }, 0],
  ])("selects by %s as the list of nodes does", async (_, filter, matched) => {
    expect((await bulk("cordon", { filter, plan: true })).body.matched).toBe(matched);
    const list = new URLSearchParams(
      Object.entries(filter).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const { total } = (await api.ask("GET", `${NODES}?site_id=${siteId}&include_total=true&limit=1&${list}`)).body;
    expect(total).toBe(matched);
  });
});
