import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import type { RecordVerdict } from "../../shared/sanitization-record.ts";

/** Ends the newest decommission of a node as its workflow would, with a sanitization record of the verdict, for tests without an agent. */
export async function endCleaning(pool: Pool, nodeId: string, verdict: RecordVerdict = "clean"): Promise<void> {
  const { rows } = await pool.query(
    `select d.decommission_id as id, d.hostname, a.id as allocation, a.tenant, (select count(*)::int + 1 from sanitization_records r where r.node_id = $1) as next
      from node_decommissions d left join allocations a on a.decommission_id = d.decommission_id
      where d.node_id = $1 order by d.created_at desc limit 1`,
    [nodeId],
  );
  const { id, hostname, allocation, tenant, next } = rows[0];
  await pool.query(
    `insert into sanitization_records (record_id, node_id, sequence, hostname, allocation_id, tenant, decommission_id, mode, trust, verdict, text,
       record_sha256, signed_by_agent, agent_signature, agent_certificate_pem, countersignature, hub_signature, order_key)
     values ($1, $2, $3, $4, $5, $6, $7, 'soft_reset', 'in_place', $8, '{}', 'f', true, 's', 'c', '{}', 's', 'k')`,
    [randomUUID(), nodeId, next, hostname, allocation, tenant, id, verdict],
  );
  await pool.query("delete from workflow_subjects where workflow_id = $1", [id]);
  await pool.query("update workflows set status = 'completed', completed_at = now() where id = $1", [id]);
  await pool.query("update allocations set status = 'ended', ended_at = now() where decommission_id = $1", [id]);
  await pool.query(
    "update nodes set status = 'active', cordon_reason = null, cordon_owner = null, operation_id = null where id = $1",
    [nodeId],
  );
}
