import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../../hub/db/orm.ts";
import { gauge } from "../../../hub/metrics/counted/family.ts";
import { FAMILIES, GAUGE_GROUPS } from "../../../hub/metrics/families.ts";
import { type GaugeGroup, gaugeGroup } from "../../../hub/metrics/gauges/group.ts";
import { openMetrics } from "../../../hub/metrics/metrics.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { quietLog } from "../../support/log.ts";
import { nodeInService } from "../../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { metricValue, samplesOf } from "../../support/scrape.ts";

const facts = {
  version: "test",
  agents: () => 3,
  pool: () => ({ connections: 5, idle: 2, waiting: 1 }),
  secretStoreUsable: () => true,
  auditHeadsLost: () => 2,
  certificates: () => ({ hub_ca: new Date(1_900_000_000_000), admin_listener: null }),
};
const OPEN = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";

describe("the metrics of a hub's database", () => {
  let rig: OnboardingRig;
  beforeAll(async () => {
    rig = await startOnboardingRig({ machines: 1 });
  });
  afterAll(() => rig?.close());

  const open = (more: { groups?: readonly GaugeGroup[]; freshMs?: number; statementMs?: number } = {}) =>
    openMetrics({ databaseUrl: rig.test.url, facts, log: quietLog, freshMs: 0, ...more });

  it("show the nodes by status, and no combination without a node", async () => {
    const metrics = open();
    try {
      const node = await nodeInService(rig, "m-1");
      await nodeInService(rig, "m-2");
      const labels = { status: "active", site: "dc1" };
      expect(metricValue((await metrics.scrape(undefined)).text, "muster_nodes", labels)).toBe(2);
      await rig.services.inTx((tx) =>
        moveNode(tx, node, { from: "active", to: "quarantined", owner: "operator" }, "It is slow"),
      );
      const { text } = await metrics.scrape(undefined);
      expect(metricValue(text, "muster_nodes", labels)).toBe(1);
      expect(metricValue(text, "muster_nodes", { status: "quarantined" })).toBe(1);
      expect(text).not.toContain('muster_nodes{status="retired"');
      expect(metricValue(text, "muster_agents", { state: "connected" })).toBe(2);
      expect(metricValue(text, "muster_nodes_active_without_evidence", {})).toBe(1);
      expect(metricValue(text, "muster_database_connections", { state: "busy" })).toBe(3);
      expect(text).not.toContain("m-1");
    } finally {
      await metrics.close();
    }
  });

  const SITE = "(select id from maas_sites)";
  const NODE = "(select id from nodes where hostname = 'm-2')";
  const workflow = (status: string, column: string, value: string) =>
    `insert into workflows (id, kind, status, site_id, stage, input, ${column}) values (gen_random_uuid(), 'onboard', '${status}', ${SITE}, 'wait_for_ready', '{}', ${value})`;
  const SECONDS_OF_A_DAY = 80_000;
  const NO_SAMPLE = Number.NaN;

  it.each<[string, string, string, Record<string, string>, number]>([
    [
      "a workflow at work",
      workflow("running", "wake_at", "now() + interval '1 hour'"),
      "muster_workflows",
      { kind: "onboard", stage: "wait_for_ready", status: "running" },
      1,
    ],
    [
      "a workflow near its deadline",
      workflow("running", "stage_entered_at, stage_deadline", "now() - interval '9 h', now() + interval '1 h'"),
      "muster_workflows_over_deadline_share",
      { share: "0.8" },
      1,
    ],
    [
      "a failed workflow",
      workflow("failed_retryable", "failure_class", "'state_ambiguity'"),
      "muster_workflows_failed",
      { class: "state_ambiguity", status: "failed_retryable" },
      1,
    ],
    [
      "a workflow that no hub claims",
      workflow("running", "wake_at", "now() - interval '1 day'"),
      "muster_workflows_oldest_due_seconds",
      {},
      SECONDS_OF_A_DAY,
    ],
    [
      "a queued task",
      `insert into tasks (node_id, type, input, idempotency_key, deadline, created_at) values (${NODE}, 'node.drain', '{}', 'k', now() + interval '1 day', now() - interval '1 day')`,
      "muster_tasks",
      { type: "node.drain", state: "queued" },
      1,
    ],
    ["the age of a queued task", "select 1", "muster_tasks_oldest_queued_seconds", {}, SECONDS_OF_A_DAY],
    ["a site that no hub watches", "select 1", "muster_site_watched", { site: "dc1" }, 0],
    [
      "a site that a hub watches",
      `insert into maas_site_watches (site_id, lease_owner, lease_until, last_poll_at, consecutive_failures, unreadable_machines) values (${SITE}, gen_random_uuid(), now() + interval '1 hour', now() - interval '1 day', 7, 2)`,
      "muster_site_watched",
      { site: "dc1" },
      1,
    ],
    ["a site whose polls fail", "select 1", "muster_site_failed_polls", { site: "dc1" }, 7],
    ["the age of the last poll", "select 1", "muster_site_feed_lag_seconds", { site: "dc1" }, SECONDS_OF_A_DAY],
    ["unreadable machines", "select 1", "muster_site_unreadable_machines", { site: "dc1" }, 2],
    [
      "a tripped breaker",
      `insert into reconciler_breakers (site_id, kind, tripped_at, would_move, move_limit, in_service, node_ids) values (${SITE}, 'offline', now(), 9, 3, 10, '{}')`,
      "muster_breaker_open",
      { site: "dc1", kind: "offline" },
      1,
    ],
    [
      "drift",
      `insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, drift_detected, drift_details) values (${NODE}, ${SITE}, 'abc', '10.0.0.1', true, jsonb_build_object('rule', 'powered_off', 'detected_at', now() - interval '1 day'))`,
      "muster_nodes_with_drift",
      { site: "dc1", rule: "powered_off" },
      1,
    ],
    ["the age of drift", "select 1", "muster_drift_oldest_seconds", {}, SECONDS_OF_A_DAY],
    [
      "a credential that fails",
      `insert into maas_credential_uses (path, site_id, warned_of) values ('kv/x', ${SITE}, 'failing')`,
      "muster_credentials_warned",
      { warning: "failing" },
      1,
    ],
    [
      "an event that no webhook got",
      `with hook as (insert into webhooks (url, types, fanned_out_to) values ('https://x.example', '{*}', 0)) update domain_events set occurred_at = now() - interval '1 day'`,
      "muster_outbox_lag_seconds",
      {},
      SECONDS_OF_A_DAY,
    ],
    [
      "a delivery that was given up",
      "insert into webhook_deliveries (webhook_id, event_seq, state) select id, 1, 'dead' from webhooks",
      "muster_webhook_deliveries",
      { state: "dead" },
      1,
    ],
    [
      "a delivery that waits",
      "insert into webhook_deliveries (webhook_id, event_seq, created_at) select id, 2, now() - interval '1 day' from webhooks",
      "muster_webhook_oldest_pending_seconds",
      {},
      SECONDS_OF_A_DAY,
    ],
    [
      "a disabled webhook",
      "update webhooks set active = false, disabled_reason = 'gone'",
      "muster_webhooks_disabled",
      {},
      1,
    ],
    [
      "an allocation with a problem",
      `insert into allocations (node_id, site_id, hostname, generation, tenant, login_user, ssh_keys, grants_root, labels, status, problem, created_by) values (${NODE}, ${SITE}, 'm-2', 0, 't', 'u', '{}', false, '{}', 'active', 'no answer', 'a')`,
      "muster_allocations_with_problem",
      { site: "dc1" },
      1,
    ],
    ["an open allocation", "select 1", "muster_allocations", { status: "active" }, 1],
    [
      "a paused batch",
      `with b as (insert into onboarding_batches (site_id, paused_at, paused_by) values (${SITE}, now(), 'ann') returning id) insert into workflows (id, kind, status, stage, input, batch_id) select gen_random_uuid(), 'onboard', 'pending', 'load_site_config', '{}', id from b`,
      "muster_batches_paused",
      { by: "person" },
      1,
    ],
    [
      "a certificate past its renewal",
      "update node_certificates set not_before = now() - interval '23 h', not_after = now() + interval '1 h'",
      "muster_agent_certificates_overdue",
      { site: "dc1" },
      2,
    ],
    [
      "a request that waits for a second person",
      `insert into approvals (operation, needed_right, site_id, params, body, request_sha256, does, because, state, requested_by, requester, requester_ids, created_at, expires_at)
        select 'decommissionNode', 'operate_nodes', ${SITE}, '{}', '{}', state || n, 'd', '[]', state, 'ann', 'token:1', '{}', now() - interval '1 day' * n, now() + interval '1 h' * (2 - n)
        from (values ('pending', 1), ('approved', 1), ('approved', 0), ('pending', 3), ('used', 1)) a (state, n)`,
      "muster_approvals_open",
      { state: "pending" },
      1,
    ],
    ["a request past half of its time", "select 1", "muster_approvals_pending_past_half", {}, 1],
    [
      "no request past half of its time before that",
      "update approvals set expires_at = now() + interval '25 h' where state = 'pending' and expires_at > now()",
      "muster_approvals_pending_past_half",
      {},
      0,
    ],
    ["an approved request", "select 1", "muster_approvals_open", { state: "approved" }, 2],
    ["the age of the waiting request", "select 1", "muster_approvals_oldest_pending_seconds", {}, SECONDS_OF_A_DAY],
    [
      "API tokens that expire within a week",
      `insert into api_tokens (name, role, token_sha256, created_at, expires_at, revoked_at)
        select 'token ' || n, 'viewer', n, now() - interval '30 days', now() + make_interval(days => n), case n when 3 then now() end from generate_series(-1, 9) n`,
      "muster_api_tokens_expiring",
      {},
      // The tokens of the days 1 to 7 without the revoked one; the token of day 0 has expired.
      6,
    ],
    [
      "no token that was created or rotated for a week",
      `update api_tokens set created_at = now() where name = 'token 7';
        update api_tokens set previous_until = now() - interval '1 day' where name = 'token 6';
        update api_tokens set previous_until = now() - interval '3 days' where name = 'token 5'`,
      "muster_api_tokens_expiring",
      {},
      4,
    ],
    [
      "the age of a first check of the audit chain that never ends a part, although hubs begin one part after the other",
      "insert into audit_checks (began_at, part) values (now() - interval '1 day', 900)",
      "muster_audit_check_age_seconds",
      {},
      SECONDS_OF_A_DAY,
    ],
    [
      "no verdict on the audit chain before a part of the first check has ended",
      "select 1",
      "muster_audit_chain_whole",
      {},
      NO_SAMPLE,
    ],
    [
      "no age of a check that no hub has begun",
      "delete from audit_checks",
      "muster_audit_check_age_seconds",
      {},
      NO_SAMPLE,
    ],
    [
      "a checked audit chain",
      "insert into audit_checks (verified_through, checked_at) values (41, now() - interval '1 day')",
      "muster_audit_chain_whole",
      {},
      1,
    ],
    ["the newest checked entry", "select 1", "muster_audit_verified_sequence", {}, 41],
    ["the age of the last check", "select 1", "muster_audit_check_age_seconds", {}, SECONDS_OF_A_DAY],
    ["a fault of the audit chain", "update audit_checks set faults_before = 2", "muster_audit_chain_whole", {}, 0],
    [
      "an export that is behind, and not the place that no hub uses any more",
      `with seal as (insert into audit_seals (sequence, audit_id, previous_sha256, entry_sha256, sealed_at)
          select n, n, '', '', now() - interval '1 day' * (5 - n) from generate_series(1, 4) n)
        insert into audit_exports (destination, sequence, lease_owner, lease_until) values
          ('file:old', 1, gen_random_uuid(), now() - interval '2 h'), ('file:now', 3, gen_random_uuid(), now()),
          ('udp', 4, gen_random_uuid(), now())`,
      "muster_audit_export_lag_seconds",
      {},
      SECONDS_OF_A_DAY,
    ],
    [
      "no lag of an export that has everything",
      "update audit_exports set sequence = 4",
      "muster_audit_export_lag_seconds",
      {},
      0,
    ],
    [
      "an audit entry that waits for its seal",
      `with sealed as (insert into audit_logs (actor, role, action, target) select 'ann', 'admin', 'act', 't' from generate_series(1, 5) returning id)
          insert into audit_seals (sequence, audit_id, previous_sha256, entry_sha256) select 5, max(id), '', '' from sealed;
        insert into audit_logs (actor, role, action, target, occurred_at) values ('ann', 'admin', 'act', 't', now() - interval '1 day')`,
      "muster_audit_oldest_unsealed_seconds",
      {},
      SECONDS_OF_A_DAY,
    ],
    [
      "no age of unsealed entries after the seal",
      "insert into audit_seals (sequence, audit_id, previous_sha256, entry_sha256) select 6, max(id), '', '' from audit_logs",
      "muster_audit_oldest_unsealed_seconds",
      {},
      0,
    ],
    ["the lost heads of the hub", "select 1", "muster_audit_heads_lost", {}, 2],
  ])("show %s", async (_, statement, name, labels, least) => {
    await rig.test.database.pool.query(statement);
    const metrics = open();
    try {
      const value = metricValue((await metrics.scrape(undefined)).text, name, labels) ?? Number.NaN;
      if (least === SECONDS_OF_A_DAY) {
        expect(value).toBeGreaterThan(least);
        expect(value).toBeLessThan(2 * least);
      } else expect(value).toBe(least);
    } finally {
      await metrics.close();
    }
  });

  it("have every metric of the list in both formats, with its help", async () => {
    const metrics = open();
    try {
      const plain = await metrics.scrape("text/plain");
      const openMetricsText = await metrics.scrape(OPEN);
      const again = await metrics.scrape("text/plain");
      expect(again.text.match(/^# TYPE .*$/gm)).toEqual(plain.text.match(/^# TYPE .*$/gm));
      expect(plain.contentType).toContain("text/plain");
      expect(openMetricsText.contentType).toContain("application/openmetrics-text");
      expect(openMetricsText.text.endsWith("# EOF\n")).toBe(true);
      expect(plain.text).not.toContain("# EOF");
      for (const { name, kind } of FAMILIES) {
        expect(plain.text).toContain(`# HELP ${name} `);
        expect(openMetricsText.text).toContain(
          `# TYPE ${kind === "counter" ? name.replace(/_total$/, "") : name} ${kind}`,
        );
      }
      expect(plain.text).toContain("process_resident_memory_bytes");
    } finally {
      await metrics.close();
    }
  });

  it("are read once for scrapes at the same time and within the time for which they are fresh", async () => {
    let reads = 0;
    const counted = gaugeGroup({
      name: "counted",
      families: [],
      collect: async (db) => {
        reads += 1;
        await db.execute(sql`select pg_sleep(0.05)`);
      },
    });
    const metrics = open({ groups: [counted], freshMs: 3_600_000 });
    try {
      await Promise.all([metrics.scrape(undefined), metrics.scrape(OPEN), metrics.scrape(undefined)]);
      await metrics.scrape(undefined);
      expect(reads).toBe(1);
    } finally {
      await metrics.close();
    }
  });

  it("keep the other groups if one group fails or takes too long, and count the failure", async () => {
    const value = gauge({ name: "muster_test_group", help: "A test.", labels: {}, told: "database" });
    const forgotten: string[] = [];
    const slow: GaugeGroup = {
      name: "slow_test",
      families: [],
      collect: async (db) => void (await db.execute(sql`select pg_sleep(600)`)),
      forget: () => void forgotten.push("slow_test"),
    };
    const good = gaugeGroup({
      name: "good_test",
      families: [value],
      collect: async () => value.show([{ labels: {}, value: 7 }]),
    });
    const metrics = open({ groups: [slow, good], statementMs: 1_500 });
    try {
      const { text } = await metrics.scrape(undefined);
      expect(forgotten).toEqual(["slow_test"]);
      expect((await value.metric.get()).values[0]?.value).toBe(7);
      expect(metricValue(text, "muster_metrics_collect_errors_total", { group: "slow_test" })).toBe(1);
      expect(text).not.toContain('group="good_test"');
    } finally {
      await metrics.close();
    }
  });

  it("answer without the gauges of the database while the database is away", async () => {
    const metrics = openMetrics({
      databaseUrl: "postgres://nobody@127.0.0.1:1/none",
      facts,
      log: quietLog,
      statementMs: 500,
    });
    try {
      const { text } = await metrics.scrape(undefined);
      expect(metricValue(text, "muster_metrics_collect_errors_total", { group: "site_names" })).toBeGreaterThan(0);
      const ofDatabase = new Set(GAUGE_GROUPS.flatMap(({ families }) => families).map(({ name }) => name));
      expect(samplesOf(text).filter(({ name }) => ofDatabase.has(name))).toEqual([]);
      expect(ofDatabase).toContain("muster_audit_chain_whole");
      expect(metricValue(text, "muster_agents_connected", {})).toBe(3);
    } finally {
      await metrics.close();
    }
  });
});
