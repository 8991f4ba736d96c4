import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SQL, sql } from "../../hub/db/orm.ts";
import { BOUNDED, outdatedRows, PRUNED, RETENTION, removeOutdated } from "../../hub/db/queries/retention.ts";
import { ofOperation } from "../../hub/db/queries/task-reads.ts";
import { tasks, webhooks } from "../../hub/db/schema/index.ts";
import { NodeId, WorkflowId } from "../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { RETAINED_ROWS } from "../support/retained-rows.ts";
import { until } from "../support/until.ts";

const KEPT = { records: 90, history: 400 };
let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test?.drop());

const count = async (table: string): Promise<number> => {
  const { rows } = await test.database.db.execute<{ n: number }>(
    sql`select count(*)::int as n from ${sql.identifier(table)}`,
  );
  return rows[0]?.n ?? -1;
};

it("removes outdated rows, and keeps rows that a later decision may need", async () => {
  const { db } = test.database;
  const [node, other] = [randomUUID(), randomUUID()];
  const old = sql`now() - interval '91 days'`;
  for (const id of [node, other])
    await db.execute(sql`insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode)
      values (${id}, ${id}, 's', 8, 'r', 'active', 'manual')`);
  await db.execute(sql`insert into readiness_signals (id, node_id, generation, source, conditions, applied, received_at)
    select gen_random_uuid(), ${node}, 1, 'agent', '[]', true, ${old} from generate_series(1, 12000)`);
  await db.execute(sql`insert into readiness_signals (id, node_id, generation, source, conditions, applied)
    values (gen_random_uuid(), ${node}, 1, 'agent', '[]', true)`);
  const certificate = (serial: string, of: string, issued: number) =>
    db.execute(sql`insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after, issued_at)
      values (${serial}, ${of}, 1, 'f', ${old}, ${old}, now() - make_interval(days => ${issued}))`);
  await certificate("older of two", node, 95);
  await certificate("newer of two", node, 94);
  await certificate("the only one", other, 95);
  const running = randomUUID();
  await db.execute(sql`insert into workflows (id, kind, status, stage, input, completed_at) values
    (${running}, 'onboard', 'running', 's', '{}', null)`);
  const task = (workflow: string | null, finished: boolean, type = "node.drain") =>
    db.execute(sql`insert into tasks (node_id, workflow_id, type, input, idempotency_key, deadline, state, finished_at)
      values (${node}, ${workflow}, ${type}, '{}', ${randomUUID()}, ${old}, 'succeeded', ${finished ? old : sql`null`})`);
  await task(null, true);
  await task(running, true);
  await task(null, false);
  await task(null, true, "node.undrain");

  await db.execute(sql`insert into domain_events (type, subject, data, occurred_at)
    select type, 'onboardings/1', '{}', now() - make_interval(hours => age) from (values ('node.onboarding.started', 25),
      ('operation.progressed', 25), ('operation.progressed', 23)) as e (type, age)`);

  const removed = await removeOutdated(db, KEPT);

  const { rows: told } = await db.execute<{ type: string }>(sql`select type from domain_events order by seq`);
  expect(told.map(({ type }) => type)).toEqual(["node.onboarding.started", "operation.progressed"]);
  await db.execute(sql`delete from domain_events`);
  expect(new Set(Object.keys(removed))).toEqual(new Set(RETENTION.map((rule) => rule.table)));
  expect(removed).toMatchObject({ readiness_signals: 12_000, node_certificates: 1, tasks: 1, enrollment_tokens: 0 });
  expect([await count("readiness_signals"), await count("node_certificates"), await count("tasks")]).toEqual([1, 2, 3]);
  const { rows } = await db.execute<{ serial: string }>(sql`select serial from node_certificates order by serial`);
  expect(rows.map((row) => row.serial)).toEqual(["newer of two", "the only one"]);
  expect(await removeOutdated(db, KEPT)).toMatchObject({ readiness_signals: 0, tasks: 0 });
});

it("removes events from the oldest on without a gap, also beside another transaction that removes events", async () => {
  const { db, pool } = test.database;
  const ages = [100, 100, 100, 1, 100, 1];
  for (const [index, age] of ages.entries())
    await db.execute(sql`insert into domain_events (seq, type, subject, data, occurred_at)
      values (${index + 1}, 'node.status.changed', 'nodes/n', '{}', now() - make_interval(days => ${age}))`);
  const left = async () => {
    const { rows } = await db.execute<{ seq: string }>(sql`select seq::text from domain_events order by seq`);
    return rows.map(({ seq }) => Number(seq));
  };
  const other = await pool.connect();
  await other.query("begin");
  await other.query("select 1 from domain_events where seq = 1 for update");
  const removing = removeOutdated(db, KEPT);
  await until("it waits for the other", async () => {
    const { rows } = await db.execute(
      sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length > 0 ? true : undefined;
  });
  expect(await left()).toEqual([1, 2, 3, 4, 5, 6]);
  await other.query("commit");
  other.release();
  expect(await removing).toMatchObject({ domain_events: 2 });
  // Retention keeps the outdated domain event 3, because it is the last event before the recent event 4. Retention keeps the old domain event 5,
  // because retention leaves no gap after a kept event.
  expect(await left()).toEqual([3, 4, 5, 6]);
});

it("has a rule for each table, or the reason why the table does not grow", async () => {
  const { rows } = await test.database.db.execute<{ name: string }>(
    sql`select table_name as name from information_schema.tables where table_schema = 'public'`,
  );
  const tables = rows.map(({ name }) => name);
  expect(tables.length).toBeGreaterThan(30);
  const ruled = new Set(RETENTION.map((rule) => rule.table));
  expect(
    tables.filter((table) => !ruled.has(table) && BOUNDED[table] === undefined && PRUNED[table] === undefined),
  ).toEqual([]);
  expect([...ruled, ...Object.keys(BOUNDED), ...Object.keys(PRUNED)].sort()).toEqual(tables.toSorted());
});

it("removes a deleted node: first its conditions, then its history and its workflows", async () => {
  const { db } = test.database;
  const gone = async (days: number) => {
    const [node, workflow] = [randomUUID(), randomUUID()];
    const then = sql`now() - make_interval(days => ${days})`;
    await db.execute(sql`insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode, updated_at)
      values (${node}, 'h', 's', 8, 'r', 'deleted', 'manual', ${then})`);
    await db.execute(sql`insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
      values (${node}, 'agent.connected', 'False', 'Gone', '', 1, 'hub', ${then})`);
    await db.execute(sql`insert into node_events (node_id, type, owner, message, occurred_at) values
      (${node}, 'status_changed', 'remove', '', ${then}), (${node}, 'enrolled', 'agent', '', ${then})`);
    await db.execute(sql`insert into workflows (id, kind, status, stage, input, completed_at) values
      (${workflow}, 'onboard', 'completed', 's', '{}', ${then})`);
    await db.execute(sql`insert into workflow_events (workflow_id, stage, attempt, status, fence, occurred_at) values
      (${workflow}, 's', 1, 'succeeded', 1, ${then})`);
    await db.execute(sql`insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
      values (${workflow}, ${node}, ${node}, ${node}, 's', 'h', '10.0.0.1')`);
    return async () => {
      const { rows } = await db.execute<Record<string, number>>(sql`select
        (select count(*)::int from node_conditions where node_id = ${node}) as conditions,
        (select count(*)::int from node_events where node_id = ${node}) as events,
        (select count(*)::int from nodes where id = ${node}) as nodes,
        (select count(*)::int from workflow_events where workflow_id = ${workflow}) as steps,
        (select count(*)::int from workflows where id = ${workflow}) as workflows`);
      return rows[0];
    };
  };
  const [recently, lately, longAgo] = [await gone(1), await gone(100), await gone(500)];
  await removeOutdated(db, KEPT);
  // The test calls the retention twice, because the retention can delete some rows only after it has deleted rows of another table.
  await removeOutdated(db, KEPT);
  expect(await recently()).toEqual({ conditions: 1, events: 2, nodes: 1, steps: 1, workflows: 1 });
  expect(await lately()).toEqual({ conditions: 0, events: 1, nodes: 1, steps: 1, workflows: 1 });
  expect(await longAgo()).toEqual({ conditions: 0, events: 0, nodes: 0, steps: 0, workflows: 0 });
});

it("removes everything about a deleted node, including its last certificate, whichever of the two ages is shorter", async () => {
  const { db } = test.database;
  const tables = [
    "node_certificates",
    "agent_sessions",
    "node_inventories",
    "node_identity_bars",
    "node_health_overrides",
    "node_conditions",
    "tasks",
  ];
  const gone = async (days: number) => {
    const node = randomUUID();
    const then = sql`now() - make_interval(days => ${days})`;
    await db.execute(sql`insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode, updated_at)
      values (${node}, 'h', 's', 8, 'r', 'deleted', 'manual', ${then})`);
    await db.execute(sql`insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after, issued_at)
      values (${node}, ${node}, 1, 'f', ${then}, ${then}, ${then})`);
    await db.execute(sql`insert into agent_sessions (node_id, session_epoch, hub_id, channel, state, boot_id, agent_version, protocol_version,
      generation, heartbeat_ttl_ms) values (${node}, 1, ${node}, 'websocket', 'closed', 'b', '1', 1, 1, 1000)`);
    await db.execute(sql`insert into node_inventories (node_id, inventory) values (${node}, '{}')`);
    await db.execute(sql`insert into node_health_overrides (node_id, source, reason, set_by, since)
      values (${node}, 'disk-erase', 'r', 'operator:ann', ${then})`);
    await db.execute(sql`insert into node_identity_bars (node_id, generation, evidence, details, quarantined, barred_at)
      values (${node}, 1, 'second_key', '{}', false, ${then})`);
    await db.execute(sql`insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
      values (${node}, 'agent.connected', 'False', 'Gone', '', 1, 'hub', ${then})`);
    await db.execute(sql`insert into tasks (node_id, type, input, idempotency_key, deadline, state, finished_at)
      values (${node}, 'node.uninstall', '{}', ${node}, ${then}, 'succeeded', ${then})`);
    return async () => {
      const left: string[] = [];
      for (const table of tables)
        if ((await db.execute(sql`select 1 from ${sql.identifier(table)} where node_id = ${node}`)).rows.length > 0)
          left.push(table);
      return left;
    };
  };
  const [lately, soon, longAgo] = [await gone(20), await gone(100), await gone(500)];
  await removeOutdated(db, { records: 90, history: 400 });
  expect([await lately(), await soon(), await longAgo()]).toEqual([tables, [], []]);
  // If finished tasks and workflows are kept longer than the history of nodes, retention removes a deleted node's own row first.
  const [before, after] = [await gone(50), await gone(100)];
  await removeOutdated(db, { records: 90, history: 30 });
  await removeOutdated(db, { records: 90, history: 30 });
  expect(await after()).toEqual([]);
  // Retention keeps each certificate, override and task of a node for 90 days, even without the node's row.
  expect(await before()).toEqual(["node_certificates", "node_health_overrides", "tasks"]);
  await db.execute(sql`update node_certificates set not_after = now() - interval '91 days'`);
  await db.execute(sql`update node_health_overrides set since = now() - interval '91 days'`);
  await db.execute(sql`insert into enrollment_tokens (token_sha256, node_id, generation, expires_at, revoked_at)
    select node_id::text, node_id, 1, now() - interval '95 days', now() from node_health_overrides`);
  await db.execute(sql`update tasks set finished_at = now() - interval '91 days' where finished_at is not null`);
  await removeOutdated(db, { records: 90, history: 30 });
  expect(await before(), "its onboarding ended lately").toEqual(["node_health_overrides"]);
  await db.execute(sql`update enrollment_tokens set revoked_at = now() - interval '91 days'`);
  await removeOutdated(db, { records: 90, history: 30 });
  expect(await before()).toEqual([]);
});

it("removes reports about a living node, its host's own events, old answers and audit, and keeps its present state", async () => {
  const { db } = test.database;
  const node = randomUUID();
  await db.execute(sql`insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode)
    values (${node}, 'living', 's', 8, 'r', 'active', 'manual')`);
  const condition = (type: string, days: number) =>
    db.execute(sql`insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
      values (${node}, ${type}, 'True', 'Said', '', 1, 'external', now() - make_interval(days => ${days}))`);
  await condition("os.booted", 1_000);
  await condition("fabric.cabled", 1_000);
  await condition("fabric.up", 1);
  const event = (type: string, days: number) =>
    db.execute(sql`insert into node_events (node_id, type, owner, message, occurred_at)
      values (${node}, ${type}, 'o', '', now() - make_interval(days => ${days}))`);
  for (const [type, days] of [
    ["certificate_renewed", 100],
    ["session_opened", 100],
    ["condition_stale", 100],
    ["status_changed", 500],
    ["status_changed", 450],
    ["certificate_renewed", 1],
  ] as const)
    await event(type, days);
  const answer = (key: string, hours: number) =>
    db.execute(sql`insert into idempotency_keys (actor, key, request_sha256, status, body, created_at)
      values ('a', ${key}, 'f', 200, '{}', now() - make_interval(hours => ${hours}))`);
  await answer("yesterday", 25);
  await answer("today", 1);
  await removeOutdated(db, KEPT);
  const of = async (what: ReturnType<typeof sql>) =>
    (await db.execute<{ it: string }>(what)).rows.map((row) => row.it).sort();
  expect(await of(sql`select type as it from node_conditions where node_id = ${node}`)).toEqual([
    "fabric.up",
    "os.booted",
  ]);
  expect(await of(sql`select type as it from node_events where node_id = ${node}`)).toEqual([
    "certificate_renewed",
    "condition_stale",
    "session_opened",
    "status_changed",
  ]);
  expect(await of(sql`select key as it from idempotency_keys`)).toEqual(["today"]);
});

it("removes an allocation long after its end, and never an open one", async () => {
  const { db } = test.database;
  const allocation = (status: string, ended: number | null) =>
    db.execute(sql`insert into allocations (node_id, hostname, generation, tenant, login_user, ssh_keys, grants_root, labels, status, created_by, created_at, ended_at)
      values (gen_random_uuid(), 'h', 1, ${`${status} ${ended}`}, 'u', '{}', false, '{}', ${status}, 'ann', now() - interval '900 days',
        now() - make_interval(days => ${ended}::int))`);
  await allocation("ended", 401);
  await allocation("ended", 399);
  await allocation("ending", null);
  expect(await removeOutdated(db, KEPT)).toMatchObject({ allocations: 1 });
  const { rows } = await db.execute<{ tenant: string }>(sql`select tenant from allocations order by tenant`);
  expect(rows.map(({ tenant }) => tenant)).toEqual(["ended 399", "ending null"]);
  await db.execute(sql`delete from allocations`);
});

it("removes a node's power actions but for its newest, which says whether its machine is off by request", async () => {
  const { db } = test.database;
  const [node, gone] = [randomUUID(), randomUUID()];
  await db.execute(sql`insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode)
    values (${node}, 'powered', 's', 8, 'r', 'active', 'maas')`);
  const action = (of: string, verb: string, days: number) =>
    db.execute(sql`insert into power_actions (node_id, hostname, generation, site_id, maas_system_id, verb, immediate, state, requested_by, reason,
        requested_at, deadline_at, finished_at)
      select ${of}, 'h', 1, ${of}, 's', ${verb}, false, 'done', 'ann', 'r', at, at, at from (select now() - make_interval(days => ${days})) t (at)`);
  await action(node, "on", 402);
  await action(node, "off", 401);
  await action(gone, "off", 401);
  await action(gone, "cycle", 399);
  expect(await removeOutdated(db, KEPT)).toMatchObject({ power_actions: 2 });
  const { rows } = await db.execute<{ verb: string }>(sql`select verb from power_actions order by verb`);
  expect(rows.map(({ verb }) => verb)).toEqual(["cycle", "off"]);
});

it("removes an ended repair with its timeline, and never an open one", async () => {
  const { db } = test.database;
  const repair = (state: string, ended: number | null) =>
    db.execute(sql`with made as (insert into repair_cases (node_id, hostname, mode, state, category, summary, opened_by, ended_at)
      values (gen_random_uuid(), ${`${state} ${ended}`}, 'full', ${state}, 'Other', 's', 'ann', now() - make_interval(days => ${ended}::int)) returning id)
      insert into repair_events (repair_id, node_id, type, attempt, actor, message, occurred_at)
      select id, gen_random_uuid(), 'opened', 0, 'ann', 'm', now() - interval '900 days' from made`);
  await repair("closed", 401);
  await repair("abandoned", 399);
  await repair("failed", null);
  expect(await removeOutdated(db, KEPT)).toMatchObject({ repair_cases: 1, repair_events: 1 });
  const { rows } = await db.execute<{ hostname: string }>(sql`select c.hostname from repair_cases c
    join repair_events e on e.repair_id = c.id order by 1`);
  expect(rows.map(({ hostname }) => hostname)).toEqual(["abandoned 399", "failed null"]);
});

it("reads no table completely when there is nothing to remove, and no whole table for the tasks of an operation", async () => {
  const { db } = test.database;
  const young = sql`now() - make_interval(secs => g)`;
  const fill = (table: string, columns: string, values: SQL) =>
    db.execute(
      sql`insert into ${sql.identifier(table)} (${sql.raw(columns)}) select ${values} from generate_series(1, 4000) g`,
    );
  for (const [table, columns, values] of RETAINED_ROWS) await fill(table, columns, values);
  const [webhook] = await db.insert(webhooks).values({ url: "https://x", types: [], fannedOutTo: 0n }).returning();
  await fill(
    "webhook_deliveries",
    "webhook_id, event_seq, state, ended_at",
    sql`${webhook?.id}::uuid, g, 'delivered', ${young}`,
  );
  await db.execute(sql`analyze`);
  const scanned: string[] = [];
  for (const rule of RETENTION) {
    const { rows } = await db.execute(sql`explain (format json) ${outdatedRows(rule, KEPT)}`);
    const scans = JSON.stringify(rows).match(new RegExp(`"Seq Scan"[^{}]*"Relation Name":"${rule.table}"`, "g")) ?? [];
    if (scans.length > 0) scanned.push(rule.table);
  }
  // Each table in `ofTheFleet` and `ofOperations` has only one row for each node, workflow or batch, so a full scan of the table is cheap.
  const ofTheFleet = [
    "node_conditions",
    "node_inventories",
    "node_baselines",
    "agent_sessions",
    "node_identity_bars",
    "node_health_overrides",
  ];
  // The API refuses a token beyond ten thousand rows. Only a person's request that destroys something has a row in `approvals`.
  const ofPeople = ["api_tokens", "approvals"];
  const ofOperations = ["node_onboardings", "node_decommissions", "onboarding_batches"];
  expect(scanned.filter((table) => ![...ofTheFleet, ...ofPeople, ...ofOperations].includes(table))).toEqual([]);

  const operation = { nodeId: NodeId.parse(randomUUID()), workflowId: WorkflowId.parse(randomUUID()) };
  const ofTasks = db
    .select()
    .from(tasks)
    .where(ofOperation(operation, ["node.drain"]));
  const { rows: plan } = await db.execute(sql`explain (format json) ${ofTasks}`);
  expect(JSON.stringify(plan), "an index finds the tasks of an operation").toMatch(/Index (Only )?Scan/);
  expect(JSON.stringify(plan)).not.toContain("Seq Scan");
});
