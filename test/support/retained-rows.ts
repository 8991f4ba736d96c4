import { type SQL, sql } from "../../hub/db/orm.ts";

const id = sql`gen_random_uuid()`;
/** A time at which no rule of retention removes a row. */
const young = sql`now() - make_interval(secs => g)`;

/** Rows for the tables that grow with a hub's age: the table, its columns, and the values of the row with the number `g`. */
export const RETAINED_ROWS: readonly (readonly [string, string, SQL])[] = [
  [
    "readiness_signals",
    "id, node_id, generation, source, conditions, applied, received_at",
    sql`${id}, ${id}, 1, 'agent', '[]', true, ${young}`,
  ],
  [
    "received_signals",
    "sender, signal_id, content_sha256, outcome, named, conditions, decided_at, received_at",
    sql`'s', 'full-' || g, 'f', 'applied', '{}', '[]', ${young}, ${young}`,
  ],
  [
    "node_certificates",
    "serial, node_id, generation, public_key_sha256, not_before, not_after, issued_at",
    sql`'full-' || g, ${id}, 1, 'f', ${young}, ${young}, ${young}`,
  ],
  ["enrollment_tokens", "node_id, generation, token_sha256, expires_at", sql`${id}, 1, 'full-' || g, ${young}`],
  [
    "tasks",
    "node_id, type, input, idempotency_key, deadline, state, finished_at",
    sql`${id}, 'node.drain', '{}', 'full-' || g, ${young}, 'succeeded', ${young}`,
  ],
  [
    "idempotency_keys",
    "actor, key, request_sha256, status, body, created_at",
    sql`'a', 'full-' || g, 'h', 200, '{}', ${young}`,
  ],
  [
    "page_sessions",
    "id_sha256, subject, name, address, user_agent, expires_at",
    sql`'full-' || g, 'ann', 'oidc:ann', 'a', 'b', ${young}`,
  ],
  [
    "node_events",
    "node_id, type, owner, message, occurred_at",
    sql`${id}, (array['status_changed', 'enrolled', 'created'])[1 + g % 3], 'o', '', ${young}`,
  ],
  [
    "workflows",
    "id, kind, status, stage, input, completed_at",
    sql`${id}, 'onboard', 'completed', 's', '{}', ${young}`,
  ],
  [
    "workflow_events",
    "workflow_id, stage, attempt, status, fence, occurred_at",
    sql`${id}, 's', 1, 'succeeded', 1, ${young}`,
  ],
  [
    "power_actions",
    "node_id, hostname, generation, site_id, maas_system_id, verb, immediate, state, requested_by, reason, deadline_at, finished_at",
    sql`${id}, 'h', 1, ${id}, 's', 'off', false, 'done', 'ann', 'r', ${young}, ${young}`,
  ],
  ["fleet_samples", "sampled_at, nodes, schedulable, waiting", sql`${young}, '{}', 0, 0`],
  [
    "connection_attempts",
    "address, kind, detail, count, first_at, last_at",
    sql`'full-' || g, 'asked', '', 1, ${young}, ${young}`,
  ],
  [
    "domain_events",
    "seq, type, subject, data, occurred_at",
    sql`1000 + g, 'node.status.changed', 'nodes/n', '{}', ${young}`,
  ],
  [
    "nodes",
    "id, hostname, sku, gpus_total, region_code, status, onboarding_mode",
    sql`${id}, 'full-' || g, 's', 8, 'r', 'active', 'manual'`,
  ],
  [
    "allocations",
    "node_id, hostname, generation, tenant, login_user, ssh_keys, grants_root, labels, status, created_by, ended_at",
    sql`${id}, 'h', 1, 't', 'u', '{}', false, '{}', 'ended', 'ann', ${young}`,
  ],
  [
    "repair_cases",
    "id, node_id, hostname, mode, state, category, summary, opened_by, ended_at",
    sql`${id}, ${id}, 'h', 'full', 'closed', 'Other', 's', 'ann', ${young}`,
  ],
  ["repair_events", "repair_id, node_id, type, attempt, actor, message", sql`${id}, ${id}, 'opened', 0, 'ann', 'm'`],
  [
    "external_attempts",
    "node_id, number, generation, provisioner, holder, state, reason, lease_seconds, ready_within_seconds, lease_expires_at, deadline_at, changed_at",
    sql`(select n.id from nodes n where n.hostname = 'full-1' limit 1), g, 1, 'p', 'h', 'failed', 'r', 60, 60, ${young}, ${young}, ${young}`,
  ],
];
