import { lockUntilCommit } from "../advisory-locks.ts";
import { sql } from "../orm.ts";
import type { InTx, Tx } from "../tx.ts";
import { recordAudit } from "./audit-logs.ts";

/** The largest number of audit entries that one transaction removes, so that no lock lasts long. */
const AT_ONCE = 20_000;

/**
 * Removes audit entries that are older than `days` days, from the begin of the chain on without a gap, and returns their number. The newest sealed
 * audit entry stays, because the numbers of an empty chain would begin again at 1. A new audit entry names the last removed entry and its hash, so
 * that the rest of the chain stays verifiable. Returns null if the hub's database role may not remove audit entries.
 */
export async function pruneAudit(inTx: InTx, days: number): Promise<number | null> {
  let removed = 0;
  for (;;) {
    const step = await inTx((tx) => pruneStep(tx, days));
    if (step === null) return null;
    removed += step;
    if (step < AT_ONCE) return removed;
  }
}

async function pruneStep(tx: Tx, days: number): Promise<number | null> {
  const { rows: rights } = await tx.execute<{ may: boolean }>(
    sql`select has_function_privilege('muster_prune_audit(bigint)', 'execute') as may`,
  );
  if (rights[0]?.may !== true) return null;
  await lockUntilCommit(tx, "audit_chain");
  const { rows } = await tx.execute<{ through: string | null; hash: string | null; entries: number }>(sql`
    with oldest as (
      select s.sequence, s.entry_sha256, coalesce(a.occurred_at, s.sealed_at) < now() - make_interval(days => ${days}) as old
      from audit_seals s left join audit_logs a on a.id = s.audit_id order by s.sequence limit ${AT_ONCE}),
    part as (
      select sequence, entry_sha256 from oldest
      where sequence < coalesce((select min(sequence) from oldest where not old), 9223372036854775807)
        and sequence < (select max(sequence) from audit_seals))
    select (select max(sequence) from part)::text as through, count(*)::int as entries,
      (select entry_sha256 from part order by sequence desc limit 1) as hash from part`);
  const [part] = rows;
  if (part === undefined || part.through === null || part.hash === null) return 0;
  await recordAudit(tx, {
    actor: "muster",
    role: "system",
    requestId: null,
    action: "audit.prune",
    target: "audit-logs",
    reason: `entries older than ${days} days`,
    details: { through_sequence: Number(part.through), entry_sha256: part.hash, entries: part.entries },
  });
  await tx.execute(sql`select muster_prune_audit(${part.through}::bigint)`);
  return part.entries;
}
