import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import { type SQL, sql } from "../orm.ts";
import { nodeEvents } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { HOST_EVENTS, type HostEvent } from "./node-events.ts";
import { isPlan } from "./tasks.ts";

/** The largest number of rows that one SQL statement of retention removes, so that no lock lasts long. */
const AT_ONCE = 5_000;

/**
 * The period for which retention keeps a table's rows. The retention age `records` is the setting MUSTER_RETENTION_DAYS; it holds for tables of
 * machines' reports and of finished work. The retention age `history` is the setting MUSTER_HISTORY_DAYS; it holds for tables of changes of nodes and
 * of actions of people. The retention age `day` is one day; it holds for stored answers to requests with an Idempotency-Key.
 */
type Age = "records" | "history" | "day";

interface RetentionRule {
  readonly table: string;
  readonly age: Age;
  /**
   * The column by which retention removes rows, the lowest value first. If a retention rule has an `order`, retention waits for rows that another hub
   * has locked. If a retention rule has no `order`, retention removes rows in any order and skips locked rows.
   */
  readonly order?: string;
  readonly outdated: (cutoff: SQL) => SQL;
}

/**
 * SQL that is true for a table's row whose node was deleted before the cutoff or is no longer in the table of nodes. The settings
 * MUSTER_RETENTION_DAYS and MUSTER_HISTORY_DAYS are independent, so retention may remove a deleted node's row before or after the node's tasks.
 */
const ofGoneNode = (cutoff: SQL): SQL => sql`not exists (
  select 1 from nodes n where n.id = t.node_id and not (n.status = 'deleted' and n.updated_at < ${cutoff}))`;
const ofNoNode = sql`not exists (select 1 from nodes n where n.id = t.node_id)`;
/**
 * A node's status changes count as history, whoever made them. The events of stale conditions and of passed time limits explain status changes, so
 * retention keeps these kinds of events for the same time.
 */
const HISTORY: readonly HostEvent[] = [
  "session_opened",
  "status_changed",
  "condition_stale",
  "readiness_lapsed",
  "drift",
];
const OLD_WITH_RECORDS = HOST_EVENTS.filter((type) => !HISTORY.includes(type));
const strings = (values: readonly string[]): SQL => sql`any(${sql.param([...values])}::text[])`;

/** The SQL condition `ofAnyType` lists all types of node events one by one, because the index on the events' age begins with the event type. */
const ofAnyType = sql`t.type = ${strings(nodeEvents.type.enumValues)}`;

/**
 * A node's newest certificate stays as long as the node's row, because the certificate proves that the node has enrolled. A node's newest task of
 * each type stays: the drain and undrain tasks say whether the host is closed to users. Retention keeps the row of a deleted node for the period
 * `history`.
 */
export const RETENTION: readonly RetentionRule[] = [
  // Retention removes domain events from the oldest on without a gap, so the oldest stored event tells a reader whether it missed an event. Retention
  // keeps the newest outdated domain event, so a reader whose cursor is that event learns that it missed no event.
  {
    table: "domain_events",
    age: "records",
    order: "seq",
    outdated: (cutoff) => sql`t.seq < (
      select max(last.seq) from domain_events last where last.seq < coalesce(
        (select min(young.seq) from domain_events young where young.occurred_at >= ${cutoff}), 9223372036854775807))`,
  },
  // An event `operation.progressed` only tells a client that its view of an operation is out of date. A client that is a day behind with its events
  // reads the present state of its operations anyway.
  {
    table: "domain_events",
    age: "day",
    outdated: (cutoff) => sql`t.type = 'operation.progressed' and t.occurred_at < ${cutoff}`,
  },
  { table: "webhook_deliveries", age: "records", outdated: (cutoff) => sql`t.ended_at < ${cutoff}` },
  { table: "connection_attempts", age: "records", outdated: (cutoff) => sql`t.last_at < ${cutoff}` },
  { table: "page_sessions", age: "records", outdated: (cutoff) => sql`t.expires_at < ${cutoff}` },
  { table: "fleet_samples", age: "records", outdated: (cutoff) => sql`t.sampled_at < ${cutoff}` },
  { table: "readiness_signals", age: "records", outdated: (cutoff) => sql`t.received_at < ${cutoff}` },
  { table: "received_signals", age: "records", outdated: (cutoff) => sql`t.received_at < ${cutoff}` },
  {
    table: "node_certificates",
    age: "records",
    outdated: (cutoff) => sql`t.not_after < ${cutoff} and (${ofGoneNode(cutoff)} or exists (
      select 1 from node_certificates newer where newer.node_id = t.node_id and newer.issued_at > t.issued_at))`,
  },
  {
    table: "enrollment_tokens",
    age: "records",
    outdated: (cutoff) => sql`greatest(t.expires_at, t.used_at, t.revoked_at) < ${cutoff}`,
  },
  {
    table: "tasks",
    age: "records",
    outdated: (cutoff) => sql`t.finished_at < ${cutoff} and not exists (
      select 1 from workflows w where w.id = t.workflow_id and w.completed_at is null)
      and (${ofGoneNode(cutoff)} or exists (
        select 1 from tasks newer where newer.node_id = t.node_id and newer.type = t.type and newer.created_at > t.created_at
          and (${isPlan("t")} or not ${isPlan("newer")})))`,
  },
  // Retention removes old conditions of types that Muster does not define, and all conditions of nodes that were deleted before the cutoff. Retention
  // keeps a condition that a readiness policy asks for, because a node without the condition would stop being ready.
  {
    table: "node_conditions",
    age: "records",
    outdated: (
      cutoff,
    ) => sql`(t.observed_at < ${cutoff} and t.type <> all(${sql.param(Object.keys(CONDITION_TYPES))}::text[])
        and not exists (select from maas_site_profiles p where jsonb_path_exists(
          p.readiness_policy, '$[*].*[*].type ? (@ == $type)', jsonb_build_object('type', t.type))))
      or ${ofGoneNode(cutoff)}`,
  },
  { table: "node_inventories", age: "records", outdated: ofGoneNode },
  { table: "node_baselines", age: "records", outdated: ofGoneNode },
  { table: "agent_sessions", age: "records", outdated: ofGoneNode },
  { table: "node_identity_bars", age: "records", outdated: ofGoneNode },
  // A node that never enrolled loses its row when its onboarding is cancelled, and may have inherited an old health override from the machine's last
  // node. The cancel of an onboarding revokes the node's enrollment tokens, and retention counts the health override's age from then on, so that the
  // machine's next node still inherits the override.
  {
    table: "node_health_overrides",
    age: "records",
    outdated: (cutoff) => sql`t.since < ${cutoff} and ${ofGoneNode(cutoff)} and not exists (
      select 1 from enrollment_tokens k where k.node_id = t.node_id and greatest(k.expires_at, k.used_at, k.revoked_at) >= ${cutoff})`,
  },
  { table: "idempotency_keys", age: "day", outdated: (cutoff) => sql`t.created_at < ${cutoff}` },
  // Retention keeps the events of a node's boots for the period `history`, and the event of the newest boot as long as the node's row. A session that
  // reports the boot id of an earlier boot shows that a second host uses the node's identity.
  {
    table: "node_events",
    age: "records",
    outdated: (cutoff) => sql`t.occurred_at < ${cutoff} and t.type = ${strings(OLD_WITH_RECORDS)}`,
  },
  {
    table: "node_events",
    age: "history",
    outdated: (cutoff) => sql`${ofAnyType} and t.occurred_at < ${cutoff} and exists (
      select 1 from node_events newer where newer.node_id = t.node_id and newer.type = t.type and newer.id > t.id)`,
  },
  {
    table: "node_events",
    age: "history",
    outdated: (cutoff) => sql`${ofAnyType} and t.occurred_at < ${cutoff} and ${ofNoNode}`,
  },
  {
    table: "repair_events",
    age: "history",
    outdated: (cutoff) => sql`exists (select from repair_cases c where c.id = t.repair_id and c.ended_at < ${cutoff})`,
  },
  { table: "repair_cases", age: "history", outdated: (cutoff) => sql`t.ended_at < ${cutoff}` },
  // The newest attempt of an external system to provision a node names the node's profile and the external system, so retention keeps it as long as
  // the node's row.
  {
    table: "external_attempts",
    age: "history",
    outdated: (cutoff) => sql`t.changed_at < ${cutoff} and exists (
      select 1 from external_attempts newer where newer.node_id = t.node_id and newer.number > t.number)`,
  },
  // A node's newest power action says whether the machine is off by request, so retention keeps it as long as the node's row.
  {
    table: "power_actions",
    age: "history",
    outdated: (cutoff) => sql`t.finished_at < ${cutoff} and (${ofGoneNode(cutoff)} or exists (
      select 1 from power_actions newer where newer.node_id = t.node_id and newer.requested_at > t.requested_at))`,
  },
  { table: "allocations", age: "history", outdated: (cutoff) => sql`t.ended_at < ${cutoff}` },
  // Retention keeps the row of the hub's first API token, because it says whether somebody has retired this token.
  {
    table: "api_tokens",
    age: "history",
    outdated: (cutoff) => sql`least(t.revoked_at, t.expires_at) < ${cutoff} and t.name <> 'admin'`,
  },
  { table: "approvals", age: "history", outdated: (cutoff) => sql`t.expires_at < ${cutoff}` },
  {
    table: "workflow_events",
    age: "history",
    outdated: (cutoff) => sql`t.occurred_at < ${cutoff} and exists (
      select 1 from workflows w where w.id = t.workflow_id and w.completed_at < ${cutoff})`,
  },
  {
    table: "nodes",
    age: "history",
    outdated: (cutoff) => sql`t.status = 'deleted' and t.updated_at < ${cutoff}`,
  },
  // Retention removes the record of a finished onboarding or decommission only after the row of its node is gone.
  {
    table: "node_onboardings",
    age: "history",
    outdated: (cutoff) => sql`${ofNoNode} and exists (
      select 1 from workflows w where w.id = t.onboarding_id and w.completed_at < ${cutoff})`,
  },
  {
    table: "node_decommissions",
    age: "history",
    outdated: (cutoff) => sql`${ofNoNode} and exists (
      select 1 from workflows w where w.id = t.decommission_id and w.completed_at < ${cutoff})`,
  },
  {
    table: "workflows",
    age: "history",
    outdated: (cutoff) => sql`t.completed_at < ${cutoff}
      and not exists (select 1 from node_onboardings o where o.onboarding_id = t.id)
      and not exists (select 1 from node_decommissions d where d.decommission_id = t.id)
      and not exists (select 1 from workflow_subjects s where s.workflow_id = t.id)`,
  },
  {
    table: "onboarding_batches",
    age: "history",
    outdated: (cutoff) => sql`t.created_at < ${cutoff} and not exists (
      select 1 from workflows w where w.batch_id = t.id)`,
  },
];

/** The tables from which retention removes no rows, each with the reason why the table stays small. */
export const BOUNDED: Readonly<Record<string, string>> = {
  audit_checks: "one row",
  audit_exports: "one for each destination of the export, which the settings name",
  authority_statements: "one for each step of a rotation, five hundred at most; kept for ever for hosts that were off",
  condition_watch: "one row",
  database_restores: "one for each restore by an operator",
  installation: "one row",
  maas_credential_uses: "one for each secret of a site; removed with the secret",
  maas_machines: "one for each machine of a site's region",
  maas_power_credential_overrides: "written by operators, one for each selector",
  maas_roce_assignments: "written by operators, one for each interface",
  maas_roce_links: "one for each address that a row of an operator has named for a machine",
  maas_site_profiles: "written by operators, one for each name",
  maas_site_watches: "one for each site",
  maas_sites: "written by operators, one for each name",
  node_adoptions: "at most one for each node; removed with the node",
  node_maas_state: "one for each node; removed with the node",
  node_probes: "at most eight for each node in service; the hub's plan of probes removes those of other nodes",
  reconciler_breakers: "one for each site and kind of breaker",
  report_tokens: "one for each node; removed with the node",
  sanitization_records:
    "one for each turnover and each lost host of a tenant, kept for ever as evidence; triggers of the table refuse to remove one",
  sanitization_validations:
    "at most twenty for each sanitization record, written by people; triggers of the table refuse to remove one",
  skus: "written by operators, one for each id",
  ssh_key_groups: "written by operators, at most two hundred for each tenant",
  ssh_keys: "written by operators, at most a thousand for each tenant",
  tenant_uids: "at most three for each machine; kept for ever, because files of a tenant may outlive the node",
  signal_senders: "written by operators, at most a thousand",
  webhooks: "written by operators",
  workflow_subjects: "one for each host or address that an unfinished workflow holds",
};

/** The tables whose old rows are removed by separate functions such as `pruneAudit`, each with what this function removes. */
export const PRUNED: Readonly<Record<string, string>> = {
  audit_logs: "pruneAudit removes entries older than `history`, from the begin of the chain on",
  audit_seals: "pruneAudit removes the seal of each entry that it removes",
};

export interface KeptDays {
  readonly records: number;
  readonly history: number;
}

export function outdatedRows(rule: RetentionRule, kept: KeptDays): SQL {
  const days = { ...kept, day: 1 };
  const cutoff = sql`now() - make_interval(days => ${days[rule.age]}::int)`;
  const locked =
    rule.order === undefined
      ? sql`limit ${AT_ONCE} for update skip locked`
      : sql`order by t.${sql.identifier(rule.order)} limit ${AT_ONCE} for update`;
  return sql`select t.ctid from ${sql.identifier(rule.table)} t where ${rule.outdated(cutoff)} ${locked}`;
}

/** Removes, in small steps, the rows that are older than MUSTER_RETENTION_DAYS and MUSTER_HISTORY_DAYS allow. Several hubs may run retention at once. */
export async function removeOutdated(db: Db, kept: KeptDays): Promise<Readonly<Record<string, number>>> {
  const removed: Record<string, number> = {};
  for (const rule of RETENTION) {
    const table = sql.identifier(rule.table);
    for (let last = AT_ONCE; last === AT_ONCE; removed[rule.table] = (removed[rule.table] ?? 0) + last) {
      const { rowCount } = await db.execute(
        sql`delete from ${table} where ctid = any(array(${outdatedRows(rule, kept)}))`,
      );
      last = rowCount ?? 0;
    }
  }
  return removed;
}
