import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SECTIONS } from "../../../hub/diagnostics/sections/index.ts";
import { Diagnostics } from "../../../hub/diagnostics/take.ts";
import { startApiBehindProxy } from "../../support/api-behind-proxy.ts";
import { type ApiHarness, PATIENT, seedApi, startApi } from "../../support/api-harness.ts";
import type { PostgresProxy } from "../../support/postgres-proxy.ts";
import { seedTroubledFleet } from "../../support/troubled-fleet.ts";
import { until } from "../../support/until.ts";

const PATH = "/api/v1/admin/diagnostics";
const FROM_MEMORY = SECTIONS.filter((section) => section.of === "hub").map(({ name }) => name);
const FROM_DATABASE = SECTIONS.filter((section) => section.of === "database").map(({ name }) => name);

interface Shown {
  readonly list: string;
  readonly shown: number;
  readonly of: number;
}

/** Requests the hub's diagnostics. In the result of `take`, `failed` maps the name of each failed section to its error code. */
async function take(api: ApiHarness, token = api.admin) {
  const answer = await api.ask("GET", PATH, undefined, { authorization: `Bearer ${token}` });
  expect(answer.status, JSON.stringify(answer.body).slice(0, 500)).toBe(200);
  const document = Diagnostics.parse(answer.body);
  // biome-ignore lint/suspicious/noExplicitAny: each section's own schema has parsed it
  const sections = document.sections as Record<string, any>;
  const failed = Object.entries(sections).flatMap(([name, { error }]) =>
    error === undefined ? [] : [[name, error.code]],
  );
  return { document, sections, failed: Object.fromEntries(failed), text: JSON.stringify(answer.body) };
}

describe("the diagnostics of a hub", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  it("describe a fresh hub and its state, also to a viewer", async () => {
    const site = await seedApi(api);
    const { document, sections, failed } = await take(api, api.viewer);
    expect(failed).toEqual({});
    expect(Object.keys(document.sections)).toEqual(SECTIONS.map(({ name }) => name));
    expect(sections["hub"].data).toMatchObject({
      hub_id: "test",
      database: "external",
      node_version: process.versions.node,
    });
    expect(sections["process"].data).toMatchObject({ pid: process.pid, open_files: expect.any(Number) });
    expect(sections["process"].data.memory.resident_bytes).toBeGreaterThan(1e7);
    expect(sections["database"].data.migrations.missing).toEqual([]);
    expect(sections["database"].data.migrations.applied.at(-1).name).toMatch(/^0000_/);
    expect(sections["database"].data.connections).toContainEqual(
      expect.objectContaining({ application_name: "muster-test" }),
    );
    expect(sections["sites"].data.sites).toMatchObject([{ id: site.siteId, active_profiles: 1, watch: null }]);
    expect(sections["tables"].data).toContainEqual(
      expect.objectContaining({ table: "maas_sites", rows: 1, more: false }),
    );
    expect(sections["log"].data.lines.at(-1)).toMatchObject({ message: "diagnostics are taken", actor: "watcher" });
    expect(sections["settings"].data).toContainEqual({ name: "DATABASE_URL", value: "set", given: true });
  });

  it("contain nothing with the shape of a credential, wherever it was logged", async () => {
    const said =
      "connect to postgres://muster:hunter2-db@db/muster with Bearer hunter2-bearer-token failed: password=hunter2-pass";
    const named = { password: "hunter2 of two words", maas: [{ api_token: ["hunter2-named"] }] };
    api.log.warn("a library says too much", { error: new Error(said), at: { depth: [said] }, named });
    const { sections, text } = await take(api);
    expect(text).not.toContain("hunter2");
    const line = sections["log"].data.lines.find(
      ({ message }: { message: string }) => message === "a library says too much",
    );
    expect(line.error.message).toContain("postgres://[redacted]@db/muster");
    expect(line.named).toEqual({ password: "[redacted]", maas: [{ api_token: ["[redacted]"] }] });
  });

  it("are taken once for all requests that arrive meanwhile", async () => {
    const { pool } = api.database.database;
    const holder = await pool.connect();
    const asking = () => Array.from({ length: 20 }, () => take(api));
    try {
      await holder.query("begin; lock table reconciler_breakers in access exclusive mode");
      const before = api.diagnosticsAsked;
      const all = Promise.all(asking());
      await until("all have asked", () => (api.diagnosticsAsked === before + 20 ? true : undefined));
      await holder.query("rollback");
      const ids = (await all).map(({ document }) => document.taken_at);
      expect(new Set(ids).size).toBe(1);
      expect((await take(api)).document.taken_at).not.toBe(ids[0]);
    } finally {
      await holder.query("rollback");
      holder.release();
    }
  });

  it.each([
    ["mark an unfinished section of a working database as too slow, and read the other sections", { section: 3_000 }],
    ["wait only a short time for a locked table", { statement: 3_000 }],
  ])("%s", async (_, patience) => {
    const holder = await api.database.database.pool.connect();
    api.patience = { ...PATIENT, ...patience };
    try {
      await holder.query("begin; lock table reconciler_breakers in access exclusive mode");
      const { failed } = await take(api);
      expect(failed).toEqual({ tables: "too_slow", reconciliation: "too_slow" });
    } finally {
      api.patience = PATIENT;
      await holder.query("rollback");
      holder.release();
    }
  });
});

describe("the diagnostics of a hub with a troubled fleet", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  async function statementsFor(size: number): Promise<{ statements: number; taken: Awaited<ReturnType<typeof take>> }> {
    const { pool } = api.database.database;
    await pool.query("truncate maas_sites, nodes, workflows, webhooks cascade");
    await pool.query(
      "truncate maas_site_watches, maas_machines, reconciler_breakers, node_conditions, agent_sessions, connection_attempts, tasks, workflow_events",
    );
    await seedTroubledFleet(pool, size);
    let statements = 0;
    const { query } = Client.prototype;
    Client.prototype.query = function count(this: Client, ...args: unknown[]) {
      statements += 1;
      return Reflect.apply(query, this, args);
    } as typeof query;
    try {
      const taken = await take(api);
      return { statements, taken };
    } finally {
      Client.prototype.query = query;
    }
  }

  it("show what is wrong with the fleet", async () => {
    const { sections, failed } = (await statementsFor(2)).taken;
    expect(failed).toEqual({});
    expect(sections["sites"].data.sites[0]).toMatchObject({
      watch: { consecutive_failures: 2, last_error_code: "unauthorized" },
    });
    expect(sections["hubs"].data).toHaveLength(2);
    expect(sections["hubs"].data[0]).toMatchObject({
      site_leases: 1,
      workflow_leases: 4,
      lapsed_leases: 5,
      agent_sessions: 1,
    });
    expect(sections["nodes"].data.counts).toMatchObject([{ status: "offline", nodes: 1 }, { nodes: 1 }]);
    expect(sections["nodes"].data.conditions[0]).toMatchObject({ type: "agent.connected", status: "False" });
    expect(sections["reconciliation"].data.drifts[0].drift_details).toMatchObject({ rule: "hardware_failure" });
    expect(sections["reconciliation"].data.breakers[0]).toMatchObject({ state: "open" });
    expect(sections["credentials"].data[0]).toMatchObject({
      kind: "power_override",
      last_failure_code: "bmc_unreachable",
    });
    expect(sections["tasks"].data.counts[0]).toMatchObject({ state: "failed", tasks: 1 });
    expect(sections["agents"].data.sessions[0]).toMatchObject({ state: "open", sessions: 1 });
    expect(sections["agents"].data.connection_attempts[0]).toMatchObject({ kind: "certificate_untrusted" });
    expect(sections["webhooks"].data.webhooks[0]).toMatchObject({ origin: "https://receiver.example", dead: 1 });
    expect(sections["webhooks"].data.failures[0]).toMatchObject({ last_status: 500 });
    const { counts, workflows } = sections["workflows"].data;
    expect(counts).toContainEqual(
      expect.objectContaining({ status: "failed_manual_intervention", error_code: "maas_unreachable" }),
    );
    expect(workflows.map(({ status }: { status: string }) => status)).not.toContain("completed");
    const [failedOne] = workflows;
    expect(failedOne).toMatchObject({ hostname: "h1", status: "failed_manual_intervention", events_left_out: 20 });
    expect(failedOne.events.map(({ message }: { message: string }) => message)).toEqual(
      Array.from({ length: 10 }, (_, n) => `said ${n + 21}`),
    );
  });

  it("leave out data that a helper must not see", async () => {
    const { text } = (await statementsFor(2)).taken;
    for (const kept of ["to the agent", "to the workflow", "own-key", "kv/token", "kv/override"])
      expect(text).not.toContain(kept);
  });

  it("are limited at any size of the fleet, count what they leave out, and run as many queries", async () => {
    const small = await statementsFor(2);
    const large = await statementsFor(1_000);
    expect(large.statements).toBe(small.statements);
    const { sections, failed, text } = large.taken;
    expect(failed).toEqual({});
    expect(Buffer.byteLength(text)).toBeLessThan(3_000_000);
    const left = Object.entries(sections).flatMap(([name, { left_out }]) =>
      left_out.map(({ list, shown, of }: Shown) => [`${name}/${list}`, shown < of ? of : "nothing"]),
    );
    expect(Object.fromEntries(left)).toEqual({
      "agents/connection_attempts": 1_000,
      "agents/sessions": 1_000,
      "credentials/credentials": 1_000,
      "hubs/hubs": 1_000,
      "nodes/condition_counts": 1_000,
      "nodes/conditions": 1_000,
      "nodes/counts": 1_000,
      "reconciliation/breakers": 1_000,
      "reconciliation/drifts": 1_000,
      "reconciliation/sites": 1_000,
      "sites/machines": 1_000,
      "sites/sites": 1_000,
      "tasks/counts": 1_000,
      "tasks/failures": 1_000,
      "webhooks/failures": 1_000,
      "webhooks/webhooks": 1_000,
      "workflows/counts": 4_000,
      "workflows/workflows.at_work": 1_000,
      "workflows/workflows.failed": 1_000,
      "workflows/workflows.pending": 1_000,
    });
    const { rows } = sections["tables"].data.find(({ table }: { table: string }) => table === "workflow_events");
    expect(rows).toBe(50_000);
  });
});

describe("the diagnostics of a hub with database trouble", () => {
  let proxy: PostgresProxy;
  let api: ApiHarness;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ api, proxy, close } = await startApiBehindProxy());
  });
  afterAll(() => close?.());

  const away = Object.fromEntries(FROM_DATABASE.map((name) => [name, "database_away"]));

  it.each(["lost_before", "stalled"] as const)(
    "are available without the database to the token of the hub's folder: %s",
    async (fate) => {
      api.log.error("this is how it began");
      proxy.decide = () => fate;
      api.patience = { ...PATIENT, section: 3_000 };
      const { sections, failed } = await take(api);
      api.patience = PATIENT;
      proxy.decide = () => "pass";
      proxy.cutAll();
      expect(failed).toEqual(away);
      for (const name of FROM_MEMORY) expect(sections[name]).toHaveProperty("data");
      expect(JSON.stringify(sections["log"])).toContain("this is how it began");
      expect((await take(api)).failed).toEqual({});
    },
  );

  it("are not available without the database to any other token", async () => {
    const ask = (token: string) => api.ask("GET", PATH, undefined, { authorization: `Bearer ${token}` });
    proxy.decide = () => "lost_before";
    for (const token of [api.viewer, "unknown"]) expect((await ask(token)).problem.code).toBe("unavailable");
    proxy.decide = () => "pass";
    await api.database.database.pool.query("update api_tokens set revoked_at = now() where name = 'admin'");
    expect((await ask(api.admin)).problem.code).toBe("unauthenticated");
  });

  it("are the only route that answers without the database", async () => {
    proxy.decide = () => "lost_before";
    expect((await api.ask("GET", "/api/v1/admin/nodes")).problem.code).toBe("unavailable");
    proxy.decide = () => "pass";
  });
});
