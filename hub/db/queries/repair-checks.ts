import type { NodeId } from "../../../shared/ids.ts";
import type { RecordVerdict } from "../../../shared/sanitization-record.ts";
import { sql } from "../orm.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

export interface RecordAfter {
  readonly id: string;
  readonly verdict: RecordVerdict;
  readonly isRejected: boolean;
  readonly at: Date;
}

/**
 * Returns the newest sanitization record of the node whose cleaning began at or after the time, and null without one. A cleaning that began before
 * the end of a repair's work does not remove what the work left on the host.
 */
export async function recordAfter(db: Db | Tx, nodeId: NodeId, since: Date): Promise<RecordAfter | null> {
  const { rows } = await db.execute<{ id: string; verdict: RecordVerdict; rejected: boolean; at: string }>(sql`
    select r.record_id as id, r.verdict, r.created_at::text as at,
      coalesce((select v.result = 'rejected' from sanitization_validations v where v.record_id = r.record_id
        order by v.created_at desc, v.id desc limit 1), false) as rejected
    from sanitization_records r
    join node_decommissions d on d.decommission_id = r.decommission_id
    where r.node_id = ${nodeId}::uuid and date_trunc('milliseconds', d.created_at) >= ${since.toISOString()}::timestamptz
    order by r.sequence desc limit 1`);
  const [row] = rows;
  if (row === undefined) return null;
  return { id: row.id, verdict: row.verdict, isRejected: row.rejected, at: toDate(row.at) };
}
