import type { ProfileId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, sql } from "../orm.ts";
import { type MaasSite, maasSites } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
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
/** The fields of a site that a request may change. If a field is undefined in a `Change`, the site keeps the field's value. */
type Change = {
  readonly [K in keyof Fields | "status" | "defaultProfileId" | "apiTokenVaultPath"]?: MaasSite[K] | undefined;
};

/** Stores a new site, and returns null if another site has the new site's name. */
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

export const readSiteVersion = (db: Db | Tx, id: SiteId): Promise<string | null> =>
  readVersion(db, maasSites, eq(maasSites.id, id));

/**
 * Locks the site's row in share mode until the transaction ends. Other transactions may read the row or also lock it in share mode, but none may
 * change it. `keepSite` returns null if the site does not exist.
 */
export async function keepSite(tx: Tx, id: SiteId): Promise<MaasSite | null> {
  const [row] = await tx.select().from(maasSites).where(eq(maasSites.id, id)).for("share");
  return row ?? null;
}

/** Locks the site's row against changes until the transaction ends, and reads the site. */
export async function lockSite(tx: Tx, id: SiteId): Promise<MaasSite | null> {
  await tx.select({ id: maasSites.id }).from(maasSites).where(eq(maasSites.id, id)).for("no key update");
  return readSite(tx, id);
}

/** Lists sites by name, beginning after the name `after`. */
export const listSitesAfter = (
  db: Db,
  { name, after }: { readonly name: string | undefined; readonly after: string | null },
  most: number,
): Promise<MaasSite[]> =>
  db
    .select()
    .from(maasSites)
    .where(
      and(
        name === undefined ? undefined : eq(maasSites.name, name),
        after === null ? undefined : gt(maasSites.name, after),
      ),
    )
    .orderBy(asc(maasSites.name))
    .limit(most);

/**
 * Changes a site, and returns null if the site no longer has the version that the caller read. If another site has the changed site's new name,
 * PostgreSQL reports an error.
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
 * Stores the paths of a site's secrets. The argument `address` is the MAAS address at which the hub tested the MAAS token, or null if the hub tested
 * no token. `setSecretPaths` returns null if the site's address is no longer the address at which the hub tested the token.
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
