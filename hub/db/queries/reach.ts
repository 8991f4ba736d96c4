import type { SiteId } from "../../../shared/ids.ts";
import { and, type SQL, type SQLWrapper, sql } from "../orm.ts";
import type { Db } from "../tx.ts";

/**
 * The objects that a caller of the API may see and change (decision I3). A caller whose `sites` is null may see the objects of all sites and the
 * objects without a site. A caller with a `tenant` may see only what belongs to that tenant.
 */
export interface Reach {
  readonly sites: readonly SiteId[] | null;
  readonly tenant: string | null;
}

export const EVERYWHERE: Reach = { sites: null, tenant: null };

export const isUnlimited = ({ sites, tenant }: Reach): boolean => sites === null && tenant === null;

/**
 * The SQL condition that the caller may see a row, or undefined if the caller may see all rows. A caller who is limited to sites may not see a row
 * without a site. A caller who is limited to a tenant may see no row of a table without a tenant.
 */
export const isWithin = ({ sites, tenant }: Reach, row: { site: SQLWrapper; tenant?: SQLWrapper }): SQL | undefined =>
  and(
    sites === null ? undefined : sql`${row.site} = any(${sql.param([...sites])}::uuid[])`,
    tenant === null ? undefined : row.tenant === undefined ? sql`false` : sql`${row.tenant} = ${tenant}`,
  );

/**
 * SQL for the tenant whose repair systems may see a row of `repair_cases`. Every repair system may see a repair case that nobody has claimed yet, so
 * for such a case the SQL gives the caller's own tenant.
 */
export const repairTenantFor = (caller: string | null): SQL =>
  sql`case when state = 'requested' then ${caller}::text else repair_tenant end`;

/** For each kind of object that a request can name by its id, the query of the object's sites and tenant. Only a token may have several sites. */
const OBJECTS = {
  site: (id: string) => sql`select array[id] as sites, null::text as tenant from maas_sites where id = ${id}::uuid`,
  node: (id: string) => sql`select array[site_id] as sites, null::text as tenant from nodes where id = ${id}::uuid`,
  onboarding: (id: string) =>
    sql`select array[site_id] as sites, null::text as tenant from node_onboardings where onboarding_id = ${id}::uuid`,
  decommission: (id: string) =>
    sql`select array[site_id] as sites, null::text as tenant from node_decommissions where decommission_id = ${id}::uuid`,
  operation: (
    id: string,
  ) => sql`select array[w.site_id] as sites, null::text as tenant from workflows w where w.id = ${id}::uuid
    and (exists (select from node_onboardings o where o.onboarding_id = w.id)
      or exists (select from node_decommissions d where d.decommission_id = w.id))`,
  onboarding_batch: (id: string) => sql`select array[site_id] as sites, null::text as tenant from onboarding_batches
    where id = ${id}::uuid and kind = 'onboarding'`,
  decommission_batch: (id: string) => sql`select array[site_id] as sites, null::text as tenant from onboarding_batches
    where id = ${id}::uuid and kind = 'decommission'`,
  allocation: (id: string) => sql`select array[site_id] as sites, tenant from allocations where id = ${id}::uuid`,
  repair: (id: string, tenant: string | null) =>
    sql`select array[site_id] as sites, ${repairTenantFor(tenant)} as tenant from repair_cases where id = ${id}::uuid`,
  record: (id: string) => sql`select array[n.site_id] as sites, r.tenant from sanitization_records r
    left join nodes n on n.id = r.node_id where r.record_id = ${id}::uuid`,
  task: (id: string) => sql`select array[n.site_id] as sites, null::text as tenant from tasks t
    join nodes n on n.id = t.node_id where t.id = ${id}::uuid`,
  approval: (id: string) =>
    sql`select array[site_id] as sites, null::text as tenant from approvals where id = ${id}::uuid`,
  external_attempt: (id: string) =>
    sql`select array[site_id] as sites, null::text as tenant from external_attempts where id = ${id}::uuid`,
  sender: (id: string) => sql`select sites, null::text as tenant from signal_senders where id = ${id}::uuid`,
  ssh_key: (id: string) => sql`select sites, tenant from ssh_keys where id = ${id}::uuid`,
  ssh_key_group: (id: string) => sql`select sites, tenant from ssh_key_groups where id = ${id}::uuid`,
  token: (id: string) => sql`select sites, null::text as tenant from api_tokens where id = ${id}::uuid`,
} as const;
export type ObjectKind = keyof typeof OBJECTS;

/**
 * True if the object exists and the caller may see it. The same SQL statement covers an object that does not exist and one that the caller may not
 * see, so neither the answer nor its duration tells the caller which of the two is the case.
 */
export async function isReached(db: Db, kind: ObjectKind, id: string, { sites, tenant }: Reach): Promise<boolean> {
  // The list of sites of an object without a site contains only null, which is in no caller's list of sites.
  const { rows } = await db.execute(sql`select from (${OBJECTS[kind](id, tenant)}) o
    where ${sites === null ? sql`true` : sql`o.sites <@ ${sql.param([...sites])}::uuid[]`}
      and ${tenant === null ? sql`true` : sql`o.tenant = ${tenant}`}`);
  return rows.length > 0;
}
