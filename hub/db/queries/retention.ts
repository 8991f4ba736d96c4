import { type SQL, sql } from "../orm.ts";
import type { Db } from "../tx.ts";

/** One statement's worth, so that no lock is held for long. */
const AT_ONCE = 5_000;

interface RetentionRule {
  readonly table: string;
  /** Column by which the rows go, the lowest first, whoever else is removing them; without one any go, and none is waited for. */
  readonly order?: string;
  /** What may go, of rows that are older than the cutoff. */
  readonly outdated: (cutoff: SQL) => SQL;
}

/**
 * Records that only grow and that nothing decides by once they are old. History of nodes and workflows, and the audit, are kept. A node's newest certificate stays: it says
 * that the node has enrolled. So does its newest task of each type: a drain and its undrain say whether the host is closed.
 */
export const RETENTION: readonly RetentionRule[] = [
  // Only from the beginning and without a gap, so that the oldest one tells readers whether they missed any. The newest of the outdated ones stays: those
  // that were there know that they missed none.
  {
    table: "domain_events",
    order: "seq",
    outdated: (cutoff) => sql`t.seq < (
      select max(last.seq) from domain_events last where last.seq < coalesce(
        (select min(young.seq) from domain_events young where young.occurred_at >= ${cutoff}), 9223372036854775807))`,
  },
  { table: "webhook_deliveries", outdated: (cutoff) => sql`t.ended_at < ${cutoff}` },
  { table: "connection_attempts", outdated: (cutoff) => sql`t.last_at < ${cutoff}` },
  { table: "readiness_signals", outdated: (cutoff) => sql`t.received_at < ${cutoff}` },
  {
    table: "node_certificates",
    outdated: (cutoff) => sql`t.not_after < ${cutoff} and exists (
      select 1 from node_certificates newer where newer.node_id = t.node_id and newer.issued_at > t.issued_at)`,
  },
  {
    table: "enrollment_tokens",
    outdated: (cutoff) => sql`greatest(t.expires_at, t.used_at, t.revoked_at) < ${cutoff}`,
  },
  {
    table: "tasks",
    outdated: (cutoff) => sql`t.finished_at < ${cutoff} and not exists (
      select 1 from workflows w where w.id = t.workflow_id and w.completed_at is null)
      and exists (select 1 from tasks newer where newer.node_id = t.node_id and newer.type = t.type and newer.created_at > t.created_at)`,
  },
];

/** Removes what is older than the days, in small steps. Two hubs may do so at once. Returns rows removed by table. */
export async function removeOutdated(db: Db, days: number): Promise<Readonly<Record<string, number>>> {
  const cutoff = sql`now() - make_interval(days => ${days}::int)`;
  const removed: Record<string, number> = {};
  for (const rule of RETENTION) {
    const table = sql.identifier(rule.table);
    const locked =
      rule.order === undefined
        ? sql`limit ${AT_ONCE} for update skip locked`
        : sql`order by t.${sql.identifier(rule.order)} limit ${AT_ONCE} for update`;
    for (let last = AT_ONCE; last === AT_ONCE; removed[rule.table] = (removed[rule.table] ?? 0) + last) {
      const { rowCount } = await db.execute(sql`
        delete from ${table} where ctid = any(array(
          select t.ctid from ${table} t where ${rule.outdated(cutoff)} ${locked}))`);
      last = rowCount ?? 0;
    }
  }
  return removed;
}
