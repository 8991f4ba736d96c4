import type { SiteId } from "../../../shared/ids.ts";
import { and, type SQL, type SQLWrapper, sql } from "../orm.ts";
import type { Db } from "../tx.ts";

/**
 * The objects that a caller of the API may see and change (decision I3). A caller whose `sites` is null reaches the objects of all sites and the
 * objects without a site. A caller with a `tenant` reaches only what belongs to that tenant.
 */
export interface Reach {
  readonly sites: readonly SiteId[] | null;
  readonly tenant: string | null;
}

export const EVERYWHERE: Reach = { sites: null, tenant: null };

export const isUnlimited = ({ sites, tenant }: Reach): boolean => sites === null && tenant === null;

/**
 * The SQL condition that a row is within the caller's reach, or undefined if the caller reaches all rows. A row without a site is outside of every
 * reach that names sites. A row of a table without a `tenant` is outside of every reach that names a tenant.
 */
export const isWithin = ({ sites, tenant }: Reach, row: { site: SQLWrapper; tenant?: SQLWrapper }): SQL | undefined =>
  and(
    sites === null ? undefined : sql`${row.site} = any(${sql.param([...sites])}::uuid[])`,
    tenant === null ? undefined : row.tenant === undefined ? sql`false` : sql`${row.tenant} = ${tenant}`,
  );

/** For each kind of object that a request can name by its id, the query of the object's site and tenant. */
const OBJECTS = {
  site: (id: string) => sql`select id as site_id, null::text as tenant from maas_sites where id = ${id}::uuid`,
  node: (id: string) => sql`select site_id, null::text as tenant from nodes where id = ${id}::uuid`,
  onboarding: (id: string) =>
    sql`select site_id, null::text as tenant from node_onboardings where onboarding_id = ${id}::uuid`,
  decommission: (id: string) =>
    sql`select site_id, null::text as tenant from node_decommissions where decommission_id = ${id}::uuid`,
  onboarding_batch: (id: string) =>
    sql`select site_id, null::text as tenant from onboarding_batches where id = ${id}::uuid and kind = 'onboarding'`,
  decommission_batch: (id: string) =>
    sql`select site_id, null::text as tenant from onboarding_batches where id = ${id}::uuid and kind = 'decommission'`,
  allocation: (id: string) => sql`select site_id, tenant from allocations where id = ${id}::uuid`,
  record: (id: string) => sql`select n.site_id, r.tenant from sanitization_records r
    left join nodes n on n.id = r.node_id where r.record_id = ${id}::uuid`,
  task: (id: string) => sql`select n.site_id, null::text as tenant from tasks t
    join nodes n on n.id = t.node_id where t.id = ${id}::uuid`,
} as const;
export type ObjectKind = keyof typeof OBJECTS;

/**
 * True if the object exists and is within the caller's reach. One SQL statement answers for an object that does not exist and for an object outside
 * of the reach, so neither the answer nor its duration tells the caller which of the two is the case.
 */
export async function isReached(db: Db, kind: ObjectKind, id: string, reach: Reach): Promise<boolean> {
  const within = isWithin(reach, { site: sql`o.site_id`, tenant: sql`o.tenant` });
  const { rows } = await db.execute(sql`select from (${OBJECTS[kind](id)}) o where ${within ?? sql`true`}`);
  return rows.length > 0;
}
