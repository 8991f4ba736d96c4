import type { ProfileId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, sql } from "../orm.ts";
import { type MaasSiteProfile, maasSiteProfiles } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { given, isVersion, readVersion } from "./row-versions.ts";

type NewProfile = typeof maasSiteProfiles.$inferInsert;
type Change = { readonly [K in keyof MaasSiteProfile]?: MaasSiteProfile[K] | undefined };

export async function insertProfile(tx: Tx, profile: NewProfile): Promise<MaasSiteProfile | null> {
  const [row] = await tx.insert(maasSiteProfiles).values(profile).onConflictDoNothing().returning();
  return row ?? null;
}

export async function readProfile(db: Db | Tx, siteId: SiteId, id: ProfileId): Promise<MaasSiteProfile | null> {
  const [row] = await db
    .select()
    .from(maasSiteProfiles)
    .where(and(eq(maasSiteProfiles.id, id), eq(maasSiteProfiles.siteId, siteId)));
  return row ?? null;
}

/**
 * Locks a profile until the transaction ends. The caller locks the profile's site before the profile, so that all callers take both locks in the same
 * order.
 */
export async function lockProfile(tx: Tx, siteId: SiteId, id: ProfileId): Promise<MaasSiteProfile | null> {
  const which = tx.select({ id: maasSiteProfiles.id }).from(maasSiteProfiles).where(eq(maasSiteProfiles.id, id));
  await which.for("no key update");
  return readProfile(tx, siteId, id);
}

export const readProfileVersion = (db: Db | Tx, id: ProfileId): Promise<string | null> =>
  readVersion(db, maasSiteProfiles, eq(maasSiteProfiles.id, id));

export const listProfilesAfter = (
  db: Db,
  siteId: SiteId,
  { name, after }: { readonly name: string | undefined; readonly after: string | null },
  most: number,
): Promise<MaasSiteProfile[]> =>
  db
    .select()
    .from(maasSiteProfiles)
    .where(
      and(
        eq(maasSiteProfiles.siteId, siteId),
        name === undefined ? undefined : eq(maasSiteProfiles.name, name),
        after === null ? undefined : gt(maasSiteProfiles.name, after),
      ),
    )
    .orderBy(asc(maasSiteProfiles.name))
    .limit(most);

export const listActiveProfiles = (db: Db, siteId: SiteId): Promise<MaasSiteProfile[]> =>
  db
    .select()
    .from(maasSiteProfiles)
    .where(and(eq(maasSiteProfiles.siteId, siteId), eq(maasSiteProfiles.status, "active")))
    .orderBy(maasSiteProfiles.name);

/**
 * Changes a profile, and returns null if the profile no longer has the version that the caller read. PostgreSQL reports an error if another profile
 * of the site already has the profile's new name.
 */
export async function changeProfile(
  tx: Tx,
  id: ProfileId,
  version: string,
  change: Change,
): Promise<MaasSiteProfile | null> {
  const [row] = await tx
    .update(maasSiteProfiles)
    .set({ ...given(change), updatedAt: sql`now()` })
    .where(and(eq(maasSiteProfiles.id, id), isVersion(version)))
    .returning();
  return row ?? null;
}

export async function disableProfile(tx: Tx, id: ProfileId): Promise<void> {
  await tx
    .update(maasSiteProfiles)
    .set({ status: "disabled", updatedAt: sql`now()` })
    .where(eq(maasSiteProfiles.id, id));
}
