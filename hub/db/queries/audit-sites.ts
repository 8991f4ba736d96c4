import { type SQL, sql } from "../orm.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** For each kind of audited object that belongs to a site, the SQL that finds the site by the object's id. */
const SITE_OF: Readonly<Record<string, (id: string) => SQL>> = {
  "maas-sites": (id) => sql`${id}::uuid`,
  "maas-site-profiles": (id) => sql`(select p.site_id from maas_site_profiles p where p.id = ${id}::uuid)`,
  "power-credential-overrides": (id) =>
    sql`(select o.site_id from maas_power_credential_overrides o where o.id = ${id}::uuid)`,
  "roce-assignments": (id) => sql`(select r.site_id from maas_roce_assignments r where r.id = ${id}::uuid)`,
  approvals: (id) => sql`(select a.site_id from approvals a where a.id = ${id}::uuid)`,
  nodes: (id) => sql`(select n.site_id from nodes n where n.id = ${id}::uuid)`,
  allocations: (id) => sql`(select a.site_id from allocations a where a.id = ${id}::uuid)`,
  tasks: (id) => sql`(select n.site_id from tasks k join nodes n on n.id = k.node_id where k.id = ${id}::uuid)`,
  onboardings: (id) => sql`(select o.site_id from node_onboardings o where o.onboarding_id = ${id}::uuid)`,
  decommissions: (id) => sql`(select d.site_id from node_decommissions d where d.decommission_id = ${id}::uuid)`,
  workflows: (id) => sql`coalesce(
    (select o.site_id from node_onboardings o where o.onboarding_id = ${id}::uuid),
    (select d.site_id from node_decommissions d where d.decommission_id = ${id}::uuid))`,
  "onboarding-batches": (id) => sql`(select b.site_id from onboarding_batches b where b.id = ${id}::uuid)`,
  "decommission-batches": (id) => sql`(select b.site_id from onboarding_batches b where b.id = ${id}::uuid)`,
};

/** SQL that finds the site of an audited object, for example of `nodes/<id>`; null for an object that belongs to no site. */
export function siteOfTarget(target: string): SQL | null {
  const [kind = "", id = ""] = target.split("/");
  const find = SITE_OF[kind];
  return find === undefined || !UUID.test(id) ? null : find(id);
}
