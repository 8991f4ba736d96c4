import type { SiteId } from "../../../shared/ids.ts";
import { and, eq, sql } from "../orm.ts";
import { maasRoceLinks } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface RoceLink {
  readonly interface: string;
  readonly ipAddress: string;
}

interface Place {
  readonly siteId: SiteId;
  readonly systemId: string;
}

const ofMachine = ({ siteId, systemId }: Place) =>
  and(eq(maasRoceLinks.siteId, siteId), eq(maasRoceLinks.maasSystemId, systemId));

/** Lists the RoCE links of a machine that Muster made or was about to make in MAAS, except links that are known to be removed. */
export const listRoceLinks = (db: Db | Tx, place: Place): Promise<RoceLink[]> =>
  db
    .select({ interface: maasRoceLinks.interface, ipAddress: maasRoceLinks.ipAddress })
    .from(maasRoceLinks)
    .where(ofMachine(place));

/** Records a machine's RoCE links before the hub asks MAAS to make them, so that a lost answer of MAAS leaves no unknown link. */
export async function noteRoceLinks(tx: Tx, { siteId, systemId }: Place, links: readonly RoceLink[]): Promise<void> {
  if (links.length === 0) return;
  await tx
    .insert(maasRoceLinks)
    .values(links.map((link) => ({ siteId, maasSystemId: systemId, ...link })))
    .onConflictDoNothing();
}

export async function forgetRoceLinks(tx: Tx, place: Place, links: readonly RoceLink[]): Promise<void> {
  for (const link of links)
    await tx
      .delete(maasRoceLinks)
      .where(
        and(
          ofMachine(place),
          sql`(${maasRoceLinks.interface}, ${maasRoceLinks.ipAddress}) = (${link.interface}, ${link.ipAddress})`,
        ),
      );
}

/** Deletes the stored RoCE links of a site that moves to another MAAS region, where the same system ids may name other machines. */
export async function forgetRoceLinksOfSite(tx: Tx, siteId: SiteId): Promise<void> {
  await tx.delete(maasRoceLinks).where(eq(maasRoceLinks.siteId, siteId));
}
