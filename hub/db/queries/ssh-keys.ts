import type { SiteId, SshKeyId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, asc, count, eq, type SQL, sql } from "../orm.ts";
import { type SshKeyRow, sshKeys } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { EVERYWHERE, type Reach } from "./reach.ts";
import { isVersion, readVersion } from "./row-versions.ts";

const t = sshKeys;

/** Changes of a tenant's keys and groups, and new allocations that name them, wait for each other until their transactions end. */
export const lockTenantKeys = (tx: Tx, tenant: string): Promise<void> => lockUntilCommit(tx, "tenant_keys", tenant);

/**
 * The SQL condition that all sites of a tenant's key or group are within the caller's reach. A key for every site is only within the reach of a caller
 * for every site.
 */
export const isHeldWithin = (reach: Reach, row: { readonly sites: SQL; readonly tenant: SQL }): SQL | undefined =>
  and(
    reach.sites === null ? undefined : sql`${row.sites} <@ ${sql.param([...reach.sites])}::uuid[]`,
    reach.tenant === null ? undefined : sql`${row.tenant} = ${reach.tenant}`,
  );

export interface HeldFilter {
  readonly ids?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  readonly name?: string | undefined;
  readonly siteId?: SiteId | undefined;
  readonly reach: Reach;
}

const matches = ({ ids, tenant, name, siteId, reach }: HeldFilter): SQL | undefined =>
  and(
    ids === undefined ? undefined : sql`${t.id} = any(${sql.param([...ids])}::uuid[])`,
    tenant === undefined ? undefined : eq(t.tenant, tenant),
    name === undefined ? undefined : eq(t.name, name),
    siteId === undefined ? undefined : sql`(${t.sites} is null or ${siteId}::uuid = any(${t.sites}))`,
    isHeldWithin(reach, { sites: sql`${t.sites}`, tenant: sql`${t.tenant}` }),
  );

export async function insertSshKey(
  tx: Tx,
  key: Pick<SshKeyRow, "tenant" | "name" | "publicKey" | "fingerprint" | "sites" | "createdBy">,
): Promise<SshKeyRow> {
  const [row] = await tx.insert(t).values(key).returning();
  if (row === undefined) throw new Error("the insertion of an SSH key returned no row");
  return row;
}

export async function countSshKeys(tx: Tx, tenant: string): Promise<number> {
  const [row] = await tx.select({ n: count() }).from(t).where(eq(t.tenant, tenant));
  return row?.n ?? 0;
}

/** Returns a key of the tenant that has the name or the fingerprint. */
export async function findTwin(
  tx: Tx,
  tenant: string,
  { name, fingerprint }: Partial<Pick<SshKeyRow, "name" | "fingerprint">>,
): Promise<SshKeyRow | null> {
  const [row] = await tx
    .select()
    .from(t)
    .where(and(eq(t.tenant, tenant), sql`(${t.name} = ${name ?? null} or ${t.fingerprint} = ${fingerprint ?? null})`))
    .limit(1);
  return row ?? null;
}

export async function readSshKey(db: Db | Tx, id: SshKeyId): Promise<SshKeyRow | null> {
  const [row] = await db.select().from(t).where(eq(t.id, id));
  return row ?? null;
}

export const readSshKeyVersion = (db: Db | Tx, id: SshKeyId): Promise<string | null> =>
  readVersion(db, t, eq(t.id, id));

/** Returns those of the keys that exist and are within the reach. */
export const readSshKeys = (db: Db | Tx, ids: readonly SshKeyId[], reach: Reach = EVERYWHERE): Promise<SshKeyRow[]> =>
  ids.length === 0 ? Promise.resolve([]) : db.select().from(t).where(matches({ ids, reach }));

/** Lists keys by tenant and name. */
export const listSshKeysAfter = (
  db: Db,
  filter: HeldFilter,
  page: { readonly after: readonly [string, string] | null; readonly limit: number },
): Promise<SshKeyRow[]> =>
  db
    .select()
    .from(t)
    .where(
      and(
        matches(filter),
        page.after === null ? undefined : sql`(${t.tenant}, ${t.name}) > (${page.after[0]}, ${page.after[1]})`,
      ),
    )
    .orderBy(asc(t.tenant), asc(t.name))
    .limit(page.limit);

/** Returns a page of the keys, the oldest first, and how many there are in all. */
export async function pageOfSshKeys(
  db: Db,
  filter: HeldFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ rows: SshKeyRow[]; total: number }> {
  const rows = await db
    .select()
    .from(t)
    .where(matches(filter))
    .orderBy(asc(t.createdAt), asc(t.id))
    .limit(page.limit)
    .offset(page.offset);
  const [counted] = await db.select({ total: count() }).from(t).where(matches(filter));
  return { rows, total: counted?.total ?? 0 };
}

/** Gives a key another name, and returns null if the key no longer has the version that the caller read. */
export async function renameSshKey(tx: Tx, id: SshKeyId, version: string, name: string): Promise<SshKeyRow | null> {
  const [row] = await tx
    .update(t)
    .set({ name, updatedAt: sql`now()` })
    .where(and(eq(t.id, id), isVersion(version)))
    .returning();
  return row ?? null;
}

export async function deleteSshKey(tx: Tx, id: SshKeyId): Promise<void> {
  await tx.delete(t).where(eq(t.id, id));
}
