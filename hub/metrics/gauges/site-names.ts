import type { SiteId } from "../../../shared/ids.ts";
import { sql } from "../../db/orm.ts";
import type { Db } from "../../db/tx.ts";
import { OTHER, upTo } from "../counted/family.ts";

/**
 * The largest number of sites and of SKUs that have a label value of their own in the metrics. In the metrics, every site above `MOST_SITES` and
 * every SKU above `MOST_SKUS` has the label value `other`.
 */
const MOST_SITES = 50;
const MOST_SKUS = 50;
/** The metrics' label value for an object that belongs to no site, such as a node of manual mode. */
const NO_SITE = "none";

/** The site label in the metrics may have two values more than there are named sites: `other` and `none`. */
export const siteLabel = upTo(MOST_SITES + 2);
export const skuLabel = upTo(MOST_SKUS);

/** Returns the label value of a site, or `none` for an object without a site. */
export type SiteNames = (siteId: string | null) => string;

export const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 40) || "site";

/** In the metrics, the oldest sites keep their label values, so that a new site never takes the label value of another site. */
export function siteNames(sites: readonly { readonly id: string; readonly name: string }[]): SiteNames {
  const names = new Map<string, string>();
  const taken = new Set([OTHER, NO_SITE]);
  for (const { id, name } of sites.slice(0, MOST_SITES)) {
    const slug = slugOf(name);
    const free = taken.has(slug) ? `${slug}-${id.slice(0, 8)}` : slug;
    taken.add(free);
    names.set(id, free);
  }
  return (siteId) => (siteId === null ? NO_SITE : (names.get(siteId) ?? OTHER));
}

export async function readSiteNames(db: Db): Promise<SiteNames> {
  const { rows } = await db.execute<{ id: SiteId; name: string }>(
    sql`select id, name from maas_sites order by created_at, id limit ${MOST_SITES}`,
  );
  return siteNames(rows);
}
