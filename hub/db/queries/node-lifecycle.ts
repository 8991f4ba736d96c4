import type { LifecycleEntry } from "../../../shared/api/node-lifecycle.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { type SQL, sql } from "../orm.ts";
import { toDate } from "../timestamp.ts";
import type { Db } from "../tx.ts";
import { isPlan } from "./tasks.ts";

/** The position of an entry in a node's lifecycle: its time, kind and id, as texts. */
export type LifecyclePlace = readonly [string, string, string];

export interface LifecycleRow {
  readonly entry: LifecycleEntry;
  readonly place: LifecyclePlace;
}

/** Every SELECT in the UNION of a node's lifecycle entries has the columns `at, kind, id, operation_id, what, status, by, ended_at, message`. */
const entriesOf = (node: SQL): SQL => sql`
  with operations as (
    select w.*, 'onboarding' as of_kind, 'onboard' as what, null::text as reason
      from node_onboardings o join workflows w on w.id = o.onboarding_id where o.node_id = ${node}
    union all
    select w.*, 'decommission', d.mode, d.reason
      from node_decommissions d join workflows w on w.id = d.decommission_id where d.node_id = ${node})
  select requested_at as at, of_kind as kind, id::text as id, id::text as operation_id, what, status, requested_by as by,
      completed_at as ended_at, concat_ws('; ', reason, failure_message) as message from operations
  union all
  select e.occurred_at, 'stage', lpad(e.id::text, 20, '0'), o.id::text, e.stage, e.status, null, null, e.message
    from operations o join workflow_events e on e.workflow_id = o.id
  union all
  select created_at, 'allocation', id::text, decommission_id::text, tenant, status, created_by, ended_at,
      concat_ws('; ', end_reason, error_message, problem)
    from allocations where node_id = ${node}
  union all
  select created_at, 'task', id::text, workflow_id::text, case when ${isPlan()} then type || ' (plan)' else type end, state, null, finished_at, concat_ws(': ', error_code, error_message)
    from tasks where node_id = ${node}
  union all
  select created_at, 'record', record_id::text, decommission_id::text, mode, verdict, null, null, 'trust level ' || trust
    from sanitization_records where node_id = ${node}
  union all
  select occurred_at, 'event', lpad(id::text, 20, '0'), null, type, to_status, owner, null, message
    from node_events where node_id = ${node}
  union all
  select since, 'override', source, null, source, 'stands', set_by, null, reason
    from node_health_overrides where node_id = ${node}`;

export interface LifecyclePage {
  /** The position in the node's lifecycle at which the previous page ended; null for the first page. */
  readonly after: LifecyclePlace | null;
  readonly limit: number;
  readonly newestFirst?: boolean;
  /** The kinds of lifecycle entries that the page has, such as operations or events; undefined for all kinds. */
  readonly kinds?: readonly string[] | undefined;
}

/**
 * Lists a node's lifecycle, oldest first or newest first: its operations with their stages, allocations, tasks, sanitization records, events, and its
 * present health overrides.
 */
export async function listLifecycle(
  db: Db,
  nodeId: NodeId,
  { after: last, limit, newestFirst = false, kinds }: LifecyclePage,
): Promise<LifecycleRow[]> {
  const beyond = newestFirst ? sql`<` : sql`>`;
  const after =
    last === null ? sql`true` : sql`(at, kind, id) ${beyond} (${last[0]}::timestamptz, ${last[1]}, ${last[2]})`;
  const ofKind = kinds === undefined ? sql`true` : sql`kind = any(${sql.param([...kinds])}::text[])`;
  const order = newestFirst ? sql`at desc, kind desc, id desc` : sql`at, kind, id`;
  const { rows } = await db.execute<LifecycleEntry & { place: string } & Record<string, unknown>>(sql`
    select entries.*, at::text as place from (${entriesOf(sql`${nodeId}::uuid`)}) entries
    where ${after} and ${ofKind} order by ${order} limit ${limit}`);
  return rows.map(({ place, at, ended_at: endedAt, ...row }) => ({
    entry: {
      ...row,
      at: toDate(at).toISOString(),
      ended_at: endedAt === null ? null : toDate(endedAt).toISOString(),
      message: row.message === "" ? null : row.message,
    },
    place: [place, row.kind, row.id],
  }));
}
