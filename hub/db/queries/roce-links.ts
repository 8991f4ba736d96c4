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

/** What was ever linked for a row on the machine, as far as it is not known to be gone. */
export const listRoceLinks = (db: Db | Tx, place: Place): Promise<RoceLink[]> =>
  db
    .select({ interface: maasRoceLinks.interface, ipAddress: maasRoceLinks.ipAddress })
    .from(maasRoceLinks)
    .where(ofMachine(place));

/** Before MAAS is asked for the links: of a call whose answer is lost, the link is known all the same. */
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

/** The site leaves its region: another one may give a machine the same system id. */
export async function forgetRoceLinksOfSite(tx: Tx, siteId: SiteId): Promise<void> {
  await tx.delete(maasRoceLinks).where(eq(maasRoceLinks.siteId, siteId));
}
