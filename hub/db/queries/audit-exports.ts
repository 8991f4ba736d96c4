import { and, eq, sql } from "../orm.ts";
import { auditExports } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** A hub must finish one part of an audit export within this lease, so the deadline of a syslog connection is shorter. */
const LEASE_SECONDS = 30;
const lease = sql`now() + make_interval(secs => ${LEASE_SECONDS})`;

interface Claim {
  readonly destination: string;
  readonly hubId: string;
}

export async function isExportBehind(db: Db, destination: string): Promise<boolean> {
  const { rows } = await db.execute<{ behind: boolean }>(sql`
    select coalesce((select max(s.sequence) from audit_seals s), 0)
      > coalesce((select e.sequence from audit_exports e where e.destination = ${destination}), 0) as behind`);
  return rows[0]?.behind === true;
}

/**
 * Takes or renews this hub's lease for exporting audit entries to a destination, and returns the export's position; null while another hub holds the
 * lease.
 */
export async function claimExport(db: Db, { destination, hubId }: Claim): Promise<number | null> {
  const [row] = await db
    .insert(auditExports)
    .values({ destination, leaseOwner: hubId, leaseUntil: lease })
    .onConflictDoUpdate({
      target: auditExports.destination,
      set: { leaseOwner: hubId, leaseUntil: lease },
      setWhere: sql`${auditExports.leaseOwner} = ${hubId}::uuid or ${auditExports.leaseUntil} < now()`,
    })
    .returning({ sequence: auditExports.sequence });
  return row?.sequence ?? null;
}

/** Moves the position of an audit export forward; returns false if another hub has taken the lease since. */
export async function advanceExport(
  db: Db,
  { destination, hubId, from, to }: Claim & { readonly from: number; readonly to: number },
): Promise<boolean> {
  const { rowCount } = await db
    .update(auditExports)
    .set({ sequence: to })
    .where(
      and(
        eq(auditExports.destination, destination),
        eq(auditExports.leaseOwner, hubId),
        eq(auditExports.sequence, from),
      ),
    );
  return rowCount === 1;
}

/** Ends the audit-export lease of a hub that stops, so that another hub continues at once. */
export async function endExport(db: Db, { destination, hubId }: Claim): Promise<void> {
  await db
    .update(auditExports)
    .set({ leaseUntil: sql`now()` })
    .where(and(eq(auditExports.destination, destination), eq(auditExports.leaseOwner, hubId)));
}
