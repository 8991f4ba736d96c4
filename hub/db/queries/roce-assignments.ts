import type { SiteId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, asc, eq, inArray, sql } from "../orm.ts";
import { type MaasRoceAssignment, maasRoceAssignments } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface RoceRow {
  readonly hostname: string;
  readonly interface: string;
  readonly ipv4_cidr: string;
}
export interface RoceChange {
  readonly row: RoceRow;
  readonly replaces: Pick<MaasRoceAssignment, "id" | "createdAt"> | null;
}

/**
 * Returns the site's stored RoCE rows with the same host and interface, or the same address, as one of the given rows. Until the transaction ends, no
 * other transaction writes RoCE rows of the site.
 */
export async function lockRoceRows(tx: Tx, siteId: SiteId, rows: readonly RoceRow[]): Promise<MaasRoceAssignment[]> {
  await lockUntilCommit(tx, "roce_rows", siteId);
  const t = maasRoceAssignments;
  const hostnames = sql.param(rows.map((row) => row.hostname));
  const interfaces = sql.param(rows.map((row) => row.interface));
  const cidrs = sql.param(rows.map((row) => row.ipv4_cidr));
  return tx
    .select()
    .from(t)
    .where(
      sql`${t.siteId} = ${siteId} and (
        (${t.hostname}, ${t.interface}) in (select * from unnest(${hostnames}::text[], ${interfaces}::text[]))
        or split_part(${t.ipv4Cidr}, '/', 1) in (select split_part(cidr, '/', 1) from unnest(${cidrs}::text[]) cidr))`,
    );
}

/**
 * `writeRoceRows` first deletes all changed RoCE rows, and then inserts them with their old ids. If PostgreSQL updated RoCE rows one after the other,
 * two rows that exchange addresses would violate the unique constraint.
 */
export async function writeRoceRows(tx: Tx, siteId: SiteId, changes: readonly RoceChange[]): Promise<void> {
  if (changes.length === 0) return;
  const t = maasRoceAssignments;
  const replaced = changes.flatMap(({ replaces }) => (replaces === null ? [] : [replaces.id]));
  if (replaced.length > 0) await tx.delete(t).where(inArray(t.id, replaced));
  await tx.insert(t).values(
    changes.map(({ row, replaces }) => ({
      siteId,
      hostname: row.hostname,
      interface: row.interface,
      ipv4Cidr: row.ipv4_cidr,
      ...(replaces === null ? {} : { id: replaces.id, createdAt: replaces.createdAt }),
    })),
  );
}

export async function listRoceOfHost(db: Db, siteId: SiteId, hostname: string): Promise<MaasRoceAssignment[]> {
  return db
    .select()
    .from(maasRoceAssignments)
    .where(and(eq(maasRoceAssignments.siteId, siteId), eq(maasRoceAssignments.hostname, hostname)))
    .orderBy(maasRoceAssignments.interface);
}

export function listRoceAssignmentsAfter(
  db: Db,
  siteId: SiteId,
  after: readonly string[] | null,
  most: number,
): Promise<MaasRoceAssignment[]> {
  const t = maasRoceAssignments;
  return db
    .select()
    .from(t)
    .where(
      and(
        eq(t.siteId, siteId),
        after === null ? undefined : sql`(${t.hostname}, ${t.interface}) > (${after[0] ?? ""}, ${after[1] ?? ""})`,
      ),
    )
    .orderBy(asc(t.hostname), asc(t.interface))
    .limit(most);
}

export async function deleteRoceAssignment(tx: Tx, siteId: SiteId, id: string): Promise<boolean> {
  const t = maasRoceAssignments;
  const rows = await tx
    .delete(t)
    .where(and(eq(t.id, id), eq(t.siteId, siteId)))
    .returning({ id: t.id });
  return rows.length > 0;
}
