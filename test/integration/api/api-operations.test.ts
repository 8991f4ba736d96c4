/** The list of operations of all kinds: its filters, orders, totals and pages; the overview; the history of a node. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationTimeline } from "../../../shared/api/operation-timeline.ts";
import type { OperationSummary } from "../../../shared/api/operations.ts";
import type { Overview } from "../../../shared/api/overview.ts";
import { SiteId } from "../../../shared/ids.ts";
import { addSchedulableNode } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { addActiveNode } from "../../support/site-nodes.ts";

const PATH = "/api/v1/admin/operations";

describe("the list of operations", () => {
  let api: ApiHarness;
  let siteId: string;
  let otherSite: string;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    siteId = seeded.siteId;
    const other = await seedApi(api, "dc2");
    otherSite = other.siteId;
    const host = { siteId: SiteId.parse(otherSite), hostname: "d02u01", sku: other.skuId };
    await api.database.database.inTx((tx) => addSchedulableNode(tx, host));
    const onboard = async (hostname: string, ipmi_ip: string, { siteId: site_id, profileId, skuId } = seeded) => {
      const body = { site_id, profile_id: profileId, sku_id: skuId, hostname, ipmi_ip };
      expect((await api.ask("POST", "/api/v1/admin/onboardings", body)).status).toBe(202);
    };
    await onboard("c01u01", "10.0.0.1");
    await onboard("c01u02", "10.0.0.2");
    await onboard("d01u01", "10.0.0.1", other);
    for (const hostname of ["c02u01", "c02u02"]) {
      const host = { siteId: SiteId.parse(siteId), hostname };
      const id = await api.database.database.inTx((tx) => addActiveNode(tx, host));
      const path = `/api/v1/admin/nodes/${id}/${hostname === "c02u01" ? "drain" : "decommission"}`;
      const body = { reason: "a test", ...(hostname === "c02u01" ? {} : { mode: "soft_reset" }) };
      expect((await api.ask("POST", path, body)).status).toBe(202);
    }
    const { pool } = api.database.database;
    await pool.query(
      `update workflows set status = 'failed_retryable', failure_class = 'upstream_transient', failure_code = 'maas_timeout'
       where id in (select onboarding_id from node_onboardings where hostname = 'c01u02')`,
    );
    await pool.query(
      `update workflows set status = 'running', stage_entered_at = now() - interval '9 minutes', stage_deadline = now() + interval '1 minute'
       where id in (select decommission_id from node_decommissions where hostname = 'c02u01')`,
    );
    await pool.query(
      `update workflows set status = 'running', stage_entered_at = now() - interval '1 minute', stage_deadline = now() + interval '9 minutes'
       where id in (select decommission_id from node_decommissions where hostname = 'c02u02')`,
    );
  });
  afterAll(() => api.close());

  const list = async (query: string) => {
    const { status, body, problem } = await api.ask("GET", `${PATH}?${query}`);
    expect(status, JSON.stringify(problem)).toBe(200);
    return body as { items: OperationSummary[]; next_cursor: string | null; total: number | null };
  };
  const overview = async (token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const { status, body, problem } = await api.ask("GET", "/api/v1/admin/overview", undefined, headers);
    expect(status, JSON.stringify(problem)).toBe(200);
    return body;
  };
  const names = async (query: string) => (await list(query)).items.map(({ hostname }) => hostname);

  it("has onboardings and decommissions of every mode, newest first", async () => {
    const { items, total } = await list("include_total=true");
    expect(items.map(({ kind, hostname }) => [kind, hostname])).toEqual([
      ["soft_reset", "c02u02"],
      ["drain", "c02u01"],
      ["onboarding", "d01u01"],
      ["onboarding", "c01u02"],
      ["onboarding", "c01u01"],
    ]);
    expect(total).toBe(5);
    expect(await names("sort=requested_at&limit=2")).toEqual(["c01u01", "c01u02"]);
  });

  it.each([
    ["kind=drain,soft_reset", ["c02u02", "c02u01"]],
    ["kind=onboarding,drain&hostname_prefix=c0", ["c02u01", "c01u02", "c01u01"]],
    ["status=failed", ["c01u02"]],
    ["status=failed,running", ["c02u02", "c02u01", "c01u02"]],
    ["failure_class=upstream_transient", ["c01u02"]],
    ["hostname=c02u01", ["c02u01"]],
    ["slow=true", ["c02u01"]],
    ["slow=false&kind=drain", []],
    ["requested_by=nobody", []],
    ["sort=stage_deadline&limit=2", ["c02u01", "c02u02"]],
  ])("answers ?%s", async (query, expected) => {
    expect(await names(query)).toEqual(expected);
    if (query.includes("sort")) return;
    expect((await list(`${query}&include_total=true&limit=1`)).total).toBe(expected.length);
  });

  it("has an overview: nodes by status, what waits for a person, what is slow, drift, breakers, certificates, credentials", async () => {
    const { pool } = api.database.database;
    await pool.query("update nodes set status = 'quarantined' where hostname = 'c02u02'");
    await pool.query(
      `insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, drift_detected, drift_details)
       select id, site_id, hostname, '10.0.0.1', hostname = 'c02u01', '{"rule": "powered_off", "severity": "high"}' from nodes`,
    );
    await pool.query(
      `insert into reconciler_breakers (site_id, kind, tripped_at, would_move, move_limit, in_service, node_ids)
       values ($1, 'quarantine', now(), 9, 5, 20, '{}'), ($1, 'offline', null, 9, 5, 20, '{}')`,
      [siteId],
    );
    // The newest certificate of a node counts, in the node's present generation, unless it is revoked.
    await pool.query(
      `insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after, revoked_at)
       select h || '-' || s, id, generation + g, '0', now(), now() + make_interval(hours => s), r from nodes
       join (values ('c02u01', -1, 0, null), ('c02u01', 9, 1, null), ('c02u02', -9, 0, null), ('c02u02', 1, 0, null), ('c02u02', 9, 0, now())) of (h, s, g, r) on hostname = h`,
    );
    await pool.query("update maas_sites set api_token_vault_path = 'p' where id = $1", [siteId]);
    await pool.query(
      `insert into maas_credential_uses (site_id, path, last_failed_at, last_failure_code)
       select id, api_token_vault_path, now(), 'unauthorized' from maas_sites where id = $1`,
      [siteId],
    );
    const body = await overview();
    const groups = (body.nodes as Overview["nodes"]).map((one) => [one.status, one.count, one.schedulable]);
    expect(groups.toSorted()).toEqual([
      ["active", 1, 0],
      ["active", 1, 1],
      ["quarantined", 1, 0],
    ]);
    expect(body).toMatchObject({ more_nodes: 0, more_waiting: 0, more_credentials: 0 });
    expect(body.waiting).toEqual([
      {
        ...{ failure_class: "upstream_transient", error_code: "maas_timeout", next_action: null, next_verb: "retry" },
        ...{ count: 1, oldest_at: expect.any(String) },
        examples: [{ operation_id: expect.any(String), kind: "onboarding", hostname: "c01u02" }],
      },
    ]);
    expect(body.slow.count).toBe(1);
    expect(body.slow.operations.map(({ hostname }: OperationSummary) => hostname)).toEqual(["c02u01"]);
    expect(body.drift).toEqual([{ rule: "powered_off", severity: "high", count: 1 }]);
    expect(body.breakers).toEqual([expect.objectContaining({ site_id: siteId, kind: "quarantine", state: "open" })]);
    expect(body.certificates).toMatchObject({ ending: 1, ended: 1 });
    expect(body.certificates.examples.map(({ hostname }: { hostname: string }) => hostname)).toEqual([
      "c02u01",
      "c02u02",
    ]);
    expect(body.credentials).toEqual([
      expect.objectContaining({ site_id: siteId, credential: "maas_token", reason: "failing" }),
    ]);
  });

  it("shows in the overview only the sites of the caller", async () => {
    const tokenAt = (site: string) =>
      apiToken(api.database, { name: `viewer ${site}`, role: "viewer", sites: [SiteId.parse(site)], tenant: null });
    const everywhere = await overview();
    const own = await overview(await tokenAt(siteId));
    const { nodes, ...rest } = own;
    const ofSite = ({ site_id }: { site_id: string | null }) => site_id === siteId;
    expect(nodes).toEqual(everywhere.nodes.filter(ofSite));
    expect(nodes).not.toEqual(everywhere.nodes);
    expect({ ...rest, nodes: everywhere.nodes }).toEqual(everywhere);
    expect(await overview(await tokenAt(otherSite))).toEqual({
      ...{ nodes: [expect.objectContaining({ site_id: otherSite, count: 1 })], more_nodes: 0 },
      ...{ waiting: [], more_waiting: 0, slow: { count: 0, operations: [] }, drift: [], breakers: [] },
      ...{ certificates: { ending: 0, ended: 0, examples: [] }, credentials: [], more_credentials: 0 },
    });
  });

  it("shows the history of a node newest first, and only some kinds of entries", async () => {
    const [drain] = (await list("kind=drain")).items;
    const path = `/api/v1/admin/nodes/${drain?.node_id}/lifecycle`;
    const oldest = (await api.ask("GET", path)).body.items;
    const newest = (await api.ask("GET", `${path}?order=newest`)).body.items;
    expect(newest).toEqual(oldest.toReversed());
    const first = (await api.ask("GET", `${path}?order=newest&limit=1`)).body;
    const second = (await api.ask("GET", `${path}?order=newest&limit=1&cursor=${first.next_cursor}`)).body;
    expect([...first.items, ...second.items]).toEqual(newest.slice(0, 2));
    const some = (await api.ask("GET", `${path}?kind=decommission,event`)).body.items;
    expect(some).toEqual(oldest.filter(({ kind }: { kind: string }) => ["decommission", "event"].includes(kind)));
    expect(new Set(some.map(({ kind }: { kind: string }) => kind))).toEqual(new Set(["decommission", "event"]));
    expect((await api.ask("GET", `${path}?kind=unknown`)).status).toBe(400);
  });

  it("finds the operations of a site and of a node, and pages in every order", async () => {
    expect(await names(`site_id=${siteId}&kind=onboarding`)).toEqual(["c01u02", "c01u01"]);
    const [drain] = (await list("kind=drain")).items;
    expect(await names(`node_id=${drain?.node_id}`)).toEqual(["c02u01"]);
    for (const sort of ["-requested_at", "requested_at", "stage_deadline", "-stage_deadline"]) {
      const paged: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page = await list(`sort=${sort}&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
        paged.push(...page.items.map(({ hostname }) => hostname));
        cursor = page.next_cursor;
      }
      expect(paged, sort).toEqual(await names(`sort=${sort}`));
      expect(paged.toSorted()).toEqual(["c01u01", "c01u02", "c02u01", "c02u02", "d01u01"]);
    }
    const { next_cursor: cursor } = await list("limit=1");
    expect((await api.ask("GET", `${PATH}?sort=requested_at&cursor=${cursor}`)).status).toBe(400);
  });

  it("shows where an operation's time went, and how long its stages usually take", async () => {
    const { pool } = api.database.database;
    const [drain] = (await list("kind=drain")).items;
    const addEvents = (where: string, events: readonly (readonly [string, string, number])[]) =>
      pool.query(
        `insert into workflow_events (workflow_id, stage, attempt, status, message, fence, occurred_at)
         select id, e.stage, 1, e.status, e.stage || ' ' || e.status, 1, now() - interval '1 hour' + make_interval(secs => e.at)
         from workflows, unnest($1::text[], $2::text[], $3::float8[]) e (stage, status, at) where ${where} order by e.at`,
        [events.map(([stage]) => stage), events.map(([, status]) => status), events.map(([, , at]) => at)],
      );
    // Two drains of the past: the drain took 10 and 30 seconds, and an hour in which a person was awaited does not count.
    for (const took of [10, 30]) {
      const { rows } = await pool.query<{ id: string }>(
        `with drain as (select w as w, d as d from workflows w join node_decommissions d on d.decommission_id = w.id where w.id = $1),
         copy as (select gen_random_uuid() as id, w, d from drain),
         written as (insert into workflows select (jsonb_populate_record(w, jsonb_build_object('id', id, 'status', 'completed', 'completed_at', now()))).* from copy)
         insert into node_decommissions select (jsonb_populate_record(d, jsonb_build_object('decommission_id', id))).* from copy
         returning decommission_id as id`,
        [drain?.operation_id],
      );
      await addEvents(`id = '${rows[0]?.id}'`, [
        ["drain_node", "started", 0],
        ["drain_node", "failed", took / 2],
        ["drain_node", "started", 3_000],
        ["drain_node", "waiting", 3_000 + took / 4],
        ["drain_node", "succeeded", 3_000 + took / 2],
      ]);
    }
    await pool.query("update workflows set stage = 'drain_node' where id = $1", [drain?.operation_id]);
    await pool.query("delete from workflow_events where workflow_id = $1", [drain?.operation_id]);
    await addEvents(`id = '${drain?.operation_id}'`, [
      ["disable_node", "started", 0],
      ["disable_node", "succeeded", 4],
      ["drain_node", "started", 4],
      ["drain_node", "waiting", 6],
    ]);
    const { status, body, problem } = await api.ask("GET", `${PATH}/${drain?.operation_id}/timeline`);
    expect(status, JSON.stringify(problem)).toBe(200);
    expect(body).toMatchObject({
      kind: "drain",
      hostname: "c02u01",
      status: "running",
      cut: false,
      usual_seconds_left: null,
    });
    const stages = body.stages as OperationTimeline["stages"];
    expect(stages.map(({ stage, state, usual }) => [stage, state, usual])).toEqual([
      ["disable_node", "succeeded", null],
      ["drain_node", "under_way", { runs: 2, median_seconds: 20, p90_seconds: 28 }],
      ["retire_gpuaas_node", "expected", null],
    ]);
    expect(stages[0]?.duration_seconds).toBe(4);
    expect(stages[1]?.segments.at(-1)).toMatchObject({
      state: "waiting",
      ended_at: null,
      reason: "drain_node waiting",
    });
    expect(stages[1]?.deadline).toBe(drain?.stage_deadline);
    const unknown = await api.ask("GET", `${PATH}/00000000-0000-4000-8000-000000000000/timeline`);
    expect([unknown.status, unknown.problem?.code]).toEqual([404, "not_found"]);
    await pool.query(
      "delete from node_decommissions d using workflows w where w.id = d.decommission_id and w.status = 'completed'",
    );
    await pool.query("delete from workflows where status = 'completed'");
  });

  it("bounds the groups of the overview, and says how many it leaves out", async () => {
    const { pool } = api.database.database;
    // Each copy of the failed onboarding has its own next action, except the last two. What the last two did could not be undone.
    await pool.query(
      `with failed as (select w as w, o as o from workflows w join node_onboardings o on o.onboarding_id = w.id where o.hostname = 'c01u02'),
       copies as (select n, gen_random_uuid() as id, w, o from failed, generate_series(1, 121) n),
       written as (insert into workflows select (jsonb_populate_record(w, jsonb_build_object('id', id, 'next_action', least(n, 120)::text,
         'evidence', case when n >= 120 then '{"compensation_failed": "deploying"}' else '{}' end::jsonb))).* from copies)
       insert into node_onboardings select (jsonb_populate_record(o, jsonb_build_object('onboarding_id', id, 'hostname', 'c09u' || n))).* from copies`,
    );
    await pool.query(
      `insert into maas_power_credential_overrides (site_id, selector_type, selector_value, vault_path, updated_at)
       select $1, 'hostname', 'c' || n, 'p' || n, now() - interval '31 days' from generate_series(1, 110) n`,
      [siteId],
    );
    const body = await overview();
    expect(body.waiting).toHaveLength(100);
    expect(body).toMatchObject({ more_waiting: 21, more_credentials: 11 });
    expect(body.credentials).toHaveLength(100);
    expect(body.waiting[0]).toMatchObject({ count: 2, next_action: "120", next_verb: "restart_clean" });
    expect(body.waiting[1]).toMatchObject({ count: 1, next_verb: "retry" });
  });
});
