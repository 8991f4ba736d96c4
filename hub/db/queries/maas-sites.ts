import type { ProfileId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, inArray, sql } from "../orm.ts";
import { type MaasSite, maasSites } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { given, isVersion, readVersion } from "./row-versions.ts";

type Fields = Pick<
  MaasSite,
  | "name"
  | "regionCode"
  | "apiBaseUrl"
  | "pxeIface"
  | "pxeVlanVid"
  | "nodePxeIface"
  | "deployUser"
  | "deploySshIface"
  | "upstreamDnsServers"
>;
type Change = {
  readonly [K in keyof Fields | "status" | "defaultProfileId" | "apiTokenVaultPath"]?: MaasSite[K] | undefined;
};

export async function insertSite(tx: Tx, site: Fields): Promise<MaasSite | null> {
  const [row] = await tx.insert(maasSites).values(site).onConflictDoNothing({ target: maasSites.name }).returning();
  return row ?? null;
}

export async function setDefaultProfile(tx: Tx, id: SiteId, profileId: ProfileId): Promise<MaasSite | null> {
  const [row] = await tx.update(maasSites).set({ defaultProfileId: profileId }).where(eq(maasSites.id, id)).returning();
  return row ?? null;
}

export async function readSite(db: Db | Tx, id: SiteId): Promise<MaasSite | null> {
  const [row] = await db.select().from(maasSites).where(eq(maasSites.id, id));
  return row ?? null;
}

/** The ids of the sites with the given names. For a name that no site has, the result contains no id. */
export async function siteIdsOf(db: Db, names: readonly string[]): Promise<SiteId[]> {
  const rows = await db
    .select({ id: maasSites.id })
    .from(maasSites)
    .where(inArray(maasSites.name, [...names]));
  return rows.map(({ id }) => id);
}

export const readSiteVersion = (db: Db | Tx, id: SiteId): Promise<string | null> =>
  readVersion(db, maasSites, eq(maasSites.id, id));

/** Locks the site's row in share mode until the transaction ends: other transactions may read the row but not change it. */
export async function keepSite(tx: Tx, id: SiteId): Promise<MaasSite | null> {
  const [row] = await tx.select().from(maasSites).where(eq(maasSites.id, id)).for("share");
  return row ?? null;
}

export async function lockSite(tx: Tx, id: SiteId): Promise<MaasSite | null> {
  await tx.select({ id: maasSites.id }).from(maasSites).where(eq(maasSites.id, id)).for("no key update");
  return readSite(tx, id);
}

export const listSitesAfter = (
  db: Db,
  { name, after, reach }: { readonly name: string | undefined; readonly after: string | null; readonly reach: Reach },
  most: number,
): Promise<MaasSite[]> =>
  db
    .select()
    .from(maasSites)
    .where(
      and(
        name === undefined ? undefined : eq(maasSites.name, name),
        after === null ? undefined : gt(maasSites.name, after),
        isWithin(reach, { site: maasSites.id }),
      ),
    )
    .orderBy(asc(maasSites.name))
    .limit(most);

/**
 * Changes a site, and returns null if the site no longer has the version that the caller read. PostgreSQL reports an error if another site already
 * has the site's new name.
 */
export async function changeSite(tx: Tx, id: SiteId, version: string, change: Change): Promise<MaasSite | null> {
  const [row] = await tx
    .update(maasSites)
    .set({ ...given(change), updatedAt: sql`now()` })
    .where(and(eq(maasSites.id, id), isVersion(version)))
    .returning();
  return row ?? null;
}

export async function disableSite(tx: Tx, id: SiteId): Promise<void> {
  await tx.update(maasSites).set({ status: "disabled", updatedAt: sql`now()` }).where(eq(maasSites.id, id));
}

export type SecretPaths = Partial<
  Record<"apiTokenVaultPath" | "defaultPowerCredsVaultPath" | "deployPasswordVaultPath", string>
>;

/**
 * The argument `address` is the MAAS address at which the hub tested the new MAAS token; null if the hub tested no token. `setSecretPaths` returns
 * null if the site's MAAS address is no longer `address`.
 */
export async function setSecretPaths(
  tx: Tx,
  id: SiteId,
  paths: SecretPaths,
  address: string | null,
): Promise<MaasSite | null> {
  const [row] = await tx
    .update(maasSites)
    .set({ ...paths, updatedAt: sql`now()` })
    .where(and(eq(maasSites.id, id), address === null ? undefined : eq(maasSites.apiBaseUrl, address)))
    .returning();
  return row ?? null;
}
