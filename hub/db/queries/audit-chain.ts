import {
  AUDIT_FORMAT,
  type ChainPoint,
  contentText,
  entryText,
  GENESIS,
  type SealedEntry,
  START,
} from "../../../shared/audit-chain.ts";
import { tryLockUntilCommit } from "../advisory-locks.ts";
import { and, asc, desc, eq, gt, lte, type SQL, sql } from "../orm.ts";
import { auditLogs, auditSeals } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { AUDIT_FIELDS, AUDIT_PLACE, type ListedAudit, sha256Hex } from "./audit-logs.ts";

/** The largest number of audit entries that one transaction seals, so that the transaction holds its lock only briefly. */
const AT_ONCE = 1_000;

export const toContent = (row: Omit<ListedAudit, keyof typeof AUDIT_PLACE>) => ({
  actor: row.actor,
  via: row.via,
  role: row.role,
  address: row.address,
  request_id: row.requestId,
  action: row.action,
  target: row.target,
  outcome: row.outcome,
  error_code: row.errorCode,
  reason: row.reason,
  details: row.details,
});

/**
 * A hub of an older version writes audit entries without a hash of their content. For an audit entry that was written without a content hash, the
 * hash chain protects the content only from the moment at which a hub seals the entry.
 */
const contentHashOf = (row: Omit<ListedAudit, keyof typeof AUDIT_PLACE>): string =>
  row.contentSha256 ?? sha256Hex(contentText(toContent(row)));

const toSealedEntry = (row: ListedAudit & { readonly sequence: number }): SealedEntry => ({
  format: AUDIT_FORMAT,
  sequence: row.sequence,
  occurred_at: row.occurredAt,
  ...toContent(row),
  site_id: row.siteId,
  content_sha256: contentHashOf(row),
  previous_sha256: row.previousSha256 ?? GENESIS,
  entry_sha256: row.entrySha256 ?? GENESIS,
});

const point = { sequence: auditSeals.sequence, entry_sha256: auditSeals.entrySha256 };

export async function chainHead(db: Db | Tx): Promise<ChainPoint> {
  const [head] = await db.select(point).from(auditSeals).orderBy(desc(auditSeals.sequence)).limit(1);
  return head ?? START;
}

export async function sealAt(db: Db | Tx, sequence: number): Promise<ChainPoint | undefined> {
  const [seal] = await db.select(point).from(auditSeals).where(eq(auditSeals.sequence, sequence));
  return seal;
}

export async function firstSeal(db: Db | Tx): Promise<ChainPoint | undefined> {
  const [seal] = await db.select(point).from(auditSeals).orderBy(asc(auditSeals.sequence)).limit(1);
  return seal;
}

/**
 * Where the search for audit entries without a seal begins. An audit entry may become visible after entries with higher ids, because PostgreSQL
 * assigns ids before the commit. A search with `lookBack` therefore begins at the lowest entry id among the last `lookBack` seals, or at the begin of
 * the table if `lookBack` is null. A search with `after` begins behind the audit entry with the id `after`.
 */
export type SealFrom = { readonly lookBack: number | null } | { readonly after: bigint };

function unsealed(from: SealFrom): SQL {
  const begin =
    "after" in from
      ? sql`${from.after}::bigint`
      : from.lookBack === null
        ? sql`0`
        : sql`coalesce((select min(r.audit_id) from (
            select s.audit_id from audit_seals s order by s.sequence desc limit ${from.lookBack}) r
            having count(*) = ${from.lookBack}), 0)`;
  return sql`${auditLogs.id} > ${begin} and not exists (select 1 from audit_seals s where s.audit_id = ${auditLogs.id})`;
}

export async function hasUnsealed(db: Db, from: SealFrom): Promise<boolean> {
  const rows = await db.select({ id: auditLogs.id }).from(auditLogs).where(unsealed(from)).limit(1);
  return rows.length > 0;
}

export async function countUnsealed(db: Db): Promise<number> {
  const { rows } = await db.execute<{ n: number }>(
    sql`select count(*)::int as n from ${auditLogs} where ${unsealed({ lookBack: null })}`,
  );
  return rows[0]?.n ?? 0;
}

/**
 * Gives the next audit entries without a seal their numbers and hashes, in the order of their ids. Returns where the next search for unsealed audit
 * entries begins; null if no unsealed entry is left, or if another hub is sealing entries.
 */
export async function sealNext(tx: Tx, from: SealFrom): Promise<SealFrom | null> {
  if (!(await tryLockUntilCommit(tx, "audit_chain"))) return null;
  const rows = await tx
    .select(AUDIT_FIELDS)
    .from(auditLogs)
    .where(unsealed(from))
    .orderBy(asc(auditLogs.id))
    .limit(AT_ONCE);
  const newest = rows.at(-1);
  if (newest === undefined) return null;
  const seals: (typeof auditSeals.$inferInsert)[] = [];
  let last = await chainHead(tx);
  for (const row of rows) {
    const placed = {
      sequence: last.sequence + 1,
      occurred_at: row.occurredAt,
      site_id: row.siteId,
      content_sha256: contentHashOf(row),
      previous_sha256: last.entry_sha256,
    };
    last = { sequence: placed.sequence, entry_sha256: sha256Hex(entryText(placed)) };
    seals.push({
      sequence: last.sequence,
      auditId: row.id,
      previousSha256: placed.previous_sha256,
      entrySha256: last.entry_sha256,
    });
  }
  await tx.insert(auditSeals).values(seals);
  return rows.length === AT_ONCE ? { after: newest.id } : null;
}

/** A seal of the audit chain with its audit entry; `entry` is null if the entry was removed but the seal was not. */
export interface ReadSeal extends ChainPoint {
  readonly entry: SealedEntry | null;
}

/** Reads the sealed audit entries with numbers above `after`, in the order of the hash chain. */
export async function readChain(
  db: Db,
  { after, limit, through }: { readonly after: number; readonly limit: number; readonly through?: number },
): Promise<ReadSeal[]> {
  const rows = await db
    .select({ ...AUDIT_FIELDS, ...AUDIT_PLACE })
    .from(auditSeals)
    .leftJoin(auditLogs, eq(auditLogs.id, auditSeals.auditId))
    .where(and(gt(auditSeals.sequence, after), through === undefined ? undefined : lte(auditSeals.sequence, through)))
    .orderBy(asc(auditSeals.sequence))
    .limit(limit);
  return rows.map((row) => ({
    sequence: row.sequence,
    entry_sha256: row.entrySha256,
    entry: row.id === null ? null : toSealedEntry(row as ListedAudit & { sequence: number }),
  }));
}

/** Returns the end of the removed part of the audit chain, as the newest entry `audit.prune` names it; undefined if nothing was removed. */
export async function prunedThrough(db: Db): Promise<ChainPoint | undefined> {
  const { rows } = await db.execute<{ sequence: string; hash: string }>(sql`
    select a.details ->> 'through_sequence' as sequence, a.details ->> 'entry_sha256' as hash
    from audit_logs a where a.action = 'audit.prune' order by a.id desc limit 1`);
  const [row] = rows;
  return row === undefined ? undefined : { sequence: Number(row.sequence), entry_sha256: row.hash };
}
