import { and, eq, sql } from "../orm.ts";
import { type AuditCheck, auditChecks } from "../schema/index.ts";
import type { Db } from "../tx.ts";

const t = auditChecks;

/** A part of the check of the audit chain that this hub has claimed, with the time since the check began. */
export type ClaimedPart = AuditCheck & { readonly ageSeconds: number };

/**
 * Claims the next part of the check of the audit chain for this hub. Returns null if any hub has begun a part of the check less than `restSeconds`
 * ago, so that many hubs together check no more than one hub would.
 */
export async function claimPart(db: Db, restSeconds: number): Promise<ClaimedPart | null> {
  const [row] = await db
    .insert(t)
    .values({})
    .onConflictDoUpdate({
      target: t.id,
      set: { part: sql`${t.part} + 1`, partBeganAt: sql`now()` },
      setWhere: sql`${t.partBeganAt} <= now() - make_interval(secs => ${restSeconds}::float8)`,
    })
    .returning();
  if (row === undefined) return null;
  return { ...row, ageSeconds: (row.partBeganAt.getTime() - row.beganAt.getTime()) / 1_000 };
}

/** The results that one part of the check of the audit chain leaves for the next part. */
export type CheckProgress = Pick<
  AuditCheck,
  "position" | "atEnd" | "faults" | "faultsBefore" | "verifiedThrough" | "head"
>;

/** Stores the progress. Returns false and stores nothing if another hub has meanwhile begun the next part of the check of the audit chain. */
export async function storeProgress(
  db: Db,
  part: number,
  { isNew, ...progress }: CheckProgress & { readonly isNew: boolean },
): Promise<boolean> {
  const rows = await db
    .update(t)
    .set({ ...progress, checkedAt: sql`now()`, ...(isNew ? { beganAt: sql`now()` } : {}) })
    .where(and(eq(t.id, 1), eq(t.part, part)))
    .returning({ part: t.part });
  return rows.length > 0;
}
