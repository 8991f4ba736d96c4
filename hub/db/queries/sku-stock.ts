import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, count, eq, isNotNull, notInArray, sql } from "../orm.ts";
import { allocations, nodes, type Sku, skus } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import type { MachinePage } from "./machine-pages.ts";
import { isWithin, type Reach } from "./reach.ts";
import { schedulableNodes } from "./schedulable-nodes.ts";

/** An SKU that has a machine in the fleet at a site. */
export interface SkuAtSite {
  readonly sku: Sku;
  readonly siteId: SiteId | null;
}

/** The machines of an SKU at one site: all that are in the fleet, those with a tenant, and those that could get one now. */
export interface SkuStock {
  readonly skuId: string;
  readonly machines: number;
  readonly used: number;
  readonly usable: number;
}

interface Place {
  readonly reach: Reach;
  readonly siteId: SiteId | undefined;
}
const isThere = ({ reach, siteId }: Place) =>
  and(
    notInArray(nodes.status, ["retired", "deleted"]),
    isNotNull(nodes.siteId),
    isWithin(reach, { site: nodes.siteId }),
    siteId === undefined ? undefined : eq(nodes.siteId, siteId),
  );

/** Returns, by the id of the SKU, which SKUs have a machine at which of the sites that the caller may see. */
export const listSkusAtSites = (db: Db, place: Place): Promise<SkuAtSite[]> =>
  db
    .selectDistinct({ sku: skus, siteId: nodes.siteId })
    .from(nodes)
    .innerJoin(skus, eq(skus.id, nodes.sku))
    .where(isThere(place))
    .orderBy(asc(skus.id), asc(nodes.siteId));

/**
 * Counts the machines of each SKU at each site that the caller may see. `countSkuStock` has to find all schedulable nodes, so only code that needs
 * the numbers calls it.
 */
export function countSkuStock(db: Db, place: Place): Promise<SkuStock[]> {
  const isUsed = sql`exists (select 1 from ${allocations} a where a.node_id = ${nodes.id} and a.status <> 'ended')`;
  return db
    .select({
      skuId: nodes.sku,
      machines: count(),
      used: sql<number>`(count(*) filter (where ${isUsed}))::int`,
      usable: sql<number>`(count(*) filter (where ${nodes.id} in ${schedulableNodes}))::int`,
    })
    .from(nodes)
    .where(isThere(place))
    .groupBy(nodes.sku, nodes.siteId);
}

/** Returns a page of the machines of an SKU, oldest first, and the number of all machines of the SKU. */
export async function pageOfSku(
  db: Db,
  { skuId, ...place }: Place & { readonly skuId: string },
  { limit, offset }: MachinePage,
): Promise<{ machines: { readonly id: NodeId; readonly createdAt: Date }[]; total: number }> {
  const where = and(isThere(place), eq(nodes.sku, skuId));
  const machines = await db
    .select({ id: nodes.id, createdAt: nodes.createdAt })
    .from(nodes)
    .where(where)
    .orderBy(asc(nodes.createdAt), asc(nodes.id))
    .limit(limit)
    .offset(offset);
  const [counted] = await db.select({ total: count() }).from(nodes).where(where);
  return { machines, total: counted?.total ?? 0 };
}
