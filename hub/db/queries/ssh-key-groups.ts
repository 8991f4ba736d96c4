import type { SshKeyGroupId, SshKeyId } from "../../../shared/ids.ts";
import { and, asc, count, eq, inArray, sql } from "../orm.ts";
import { type SshKeyGroupRow, sshKeyGroups } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { type HeldFilter, type HeldPage, isHeldAfter, matchesHeld } from "./held-by-tenant.ts";
import { given, isVersion, readVersion } from "./row-versions.ts";

const t = sshKeyGroups;
type Fields = Pick<SshKeyGroupRow, "name" | "description" | "keyIds" | "sites">;

/** Returns null if the tenant already has an SSH key group of this name. */
export async function insertSshKeyGroup(
  tx: Tx,
  group: Fields & Pick<SshKeyGroupRow, "tenant" | "createdBy">,
): Promise<SshKeyGroupRow | null> {
  const [row] = await tx
    .insert(t)
    .values(group)
    .onConflictDoNothing({ target: [t.tenant, t.name] })
    .returning();
  return row ?? null;
}

export async function countSshKeyGroups(tx: Tx, tenant: string): Promise<number> {
  const [row] = await tx.select({ n: count() }).from(t).where(eq(t.tenant, tenant));
  return row?.n ?? 0;
}

export async function hasGroupNamed(tx: Tx, tenant: string, name: string): Promise<boolean> {
  const rows = await tx
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.tenant, tenant), eq(t.name, name)));
  return rows.length > 0;
}

export async function readSshKeyGroup(db: Db | Tx, id: SshKeyGroupId): Promise<SshKeyGroupRow | null> {
  const [row] = await db.select().from(t).where(eq(t.id, id));
  return row ?? null;
}

export const readSshKeyGroupVersion = (db: Db | Tx, id: SshKeyGroupId): Promise<string | null> =>
  readVersion(db, t, eq(t.id, id));

export const readSshKeyGroups = (db: Db | Tx, ids: readonly SshKeyGroupId[]): Promise<SshKeyGroupRow[]> =>
  ids.length === 0
    ? Promise.resolve([])
    : db
        .select()
        .from(t)
        .where(inArray(t.id, [...ids]));

/** Lists groups by tenant and name. */
export const listSshKeyGroupsAfter = (db: Db, filter: HeldFilter, page: HeldPage): Promise<SshKeyGroupRow[]> =>
  db
    .select()
    .from(t)
    .where(and(matchesHeld(t, filter), isHeldAfter(t, page.after)))
    .orderBy(asc(t.tenant), asc(t.name))
    .limit(page.limit);

/** Returns a page of the SSH key groups with their versions, the oldest first, and the number of all groups. */
export async function pageOfSshKeyGroups(
  db: Db,
  filter: HeldFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ rows: { group: SshKeyGroupRow; version: string }[]; total: number }> {
  const rows = await db
    .select({ group: t, version: sql<string>`xmin::text` })
    .from(t)
    .where(matchesHeld(t, filter))
    .orderBy(asc(t.createdAt), asc(t.id))
    .limit(page.limit)
    .offset(page.offset);
  const [counted] = await db.select({ total: count() }).from(t).where(matchesHeld(t, filter));
  return { rows, total: counted?.total ?? 0 };
}

/** Changes an SSH key group, and returns null if the group no longer has the version that the caller read. */
export async function changeSshKeyGroup(
  tx: Tx,
  id: SshKeyGroupId,
  version: string,
  change: { readonly [K in keyof Fields]?: Fields[K] | undefined },
): Promise<SshKeyGroupRow | null> {
  const [row] = await tx
    .update(t)
    .set({ ...given(change), updatedAt: sql`now()` })
    .where(and(eq(t.id, id), isVersion(version)))
    .returning();
  return row ?? null;
}

export async function deleteSshKeyGroup(tx: Tx, id: SshKeyGroupId): Promise<void> {
  await tx.delete(t).where(eq(t.id, id));
}

/** Takes an SSH key out of all key groups of its tenant. */
export async function removeFromGroups(tx: Tx, tenant: string, key: SshKeyId): Promise<void> {
  await tx
    .update(t)
    .set({ keyIds: sql`array_remove(${t.keyIds}, ${key}::uuid)`, updatedAt: sql`now()` })
    .where(and(eq(t.tenant, tenant), sql`${key}::uuid = any(${t.keyIds})`));
}
