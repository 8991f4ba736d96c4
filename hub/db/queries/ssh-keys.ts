import type { SshKeyId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, asc, count, eq, sql } from "../orm.ts";
import { type SshKeyRow, sshKeys } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { type HeldFilter, type HeldPage, isHeldAfter, matchesHeld } from "./held-by-tenant.ts";
import { EVERYWHERE, type Reach } from "./reach.ts";
import { isVersion, readVersion } from "./row-versions.ts";

const t = sshKeys;

/** Changes of a tenant's keys and groups, and new allocations that name them, wait for each other until their transactions end. */
export const lockTenantKeys = (tx: Tx, tenant: string): Promise<void> => lockUntilCommit(tx, "tenant_keys", tenant);

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

/** Returns an SSH key of the tenant that has the name or the fingerprint. */
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

/** Returns those of the SSH keys that exist and that the caller may see. */
export const readSshKeys = (db: Db | Tx, ids: readonly SshKeyId[], reach: Reach = EVERYWHERE): Promise<SshKeyRow[]> =>
  ids.length === 0 ? Promise.resolve([]) : db.select().from(t).where(matchesHeld(t, { ids, reach }));

/** Lists keys by tenant and name. */
export const listSshKeysAfter = (db: Db, filter: HeldFilter, page: HeldPage): Promise<SshKeyRow[]> =>
  db
    .select()
    .from(t)
    .where(and(matchesHeld(t, filter), isHeldAfter(t, page.after)))
    .orderBy(asc(t.tenant), asc(t.name))
    .limit(page.limit);

/** Returns a page of the SSH keys, the oldest first, and the number of all keys. */
export async function pageOfSshKeys(
  db: Db,
  filter: HeldFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ rows: SshKeyRow[]; total: number }> {
  const rows = await db
    .select()
    .from(t)
    .where(matchesHeld(t, filter))
    .orderBy(asc(t.createdAt), asc(t.id))
    .limit(page.limit)
    .offset(page.offset);
  const [counted] = await db.select({ total: count() }).from(t).where(matchesHeld(t, filter));
  return { rows, total: counted?.total ?? 0 };
}

/** Gives an SSH key another name, and returns null if the key no longer has the version that the caller read. */
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
