import type { SecondPerson } from "../../../shared/api/approvals.ts";
import type { NodeId, ProfileId, SiteId } from "../../../shared/ids.ts";
import { and, eq, inArray, ne, type SQL, sql } from "../orm.ts";
import { maasSiteProfiles, maasSites, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";
import { type NodeSelection, selectedNodes } from "./node-selection.ts";

/** The setting `second_person` of one profile, and the selected nodes that have the profile. */
export interface ProfileOfNodes {
  readonly id: ProfileId;
  readonly profile: string;
  readonly secondPerson: readonly SecondPerson[];
  readonly siteId: SiteId;
  readonly hostnames: readonly string[];
  /** True if at least one of the nodes has a machine that the hub has not released, so that its disks may hold the node's data. */
  readonly holdsDisks: boolean;
}

/** A node of manual mode has no machine in MAAS that the hub could deploy or release. */
const holdsDisks = sql<boolean>`(${nodes.onboardingMode} not in ('manual', 'external') and not exists (
  select 1 from node_decommissions d where d.node_id = ${nodes.id} and d.released_generation >= ${nodes.generation}))`;

/**
 * A node without an onboarding counts as having its site's default profile, so that the rule for approvals by a second person covers every node of
 * the site.
 */
const ofNode = sql`coalesce(${profileOf(nodes.id)}, ${maasSites.defaultProfileId})`;

const profilesWhere = (tx: Tx, where: SQL | undefined): Promise<ProfileOfNodes[]> =>
  tx
    .select({
      id: maasSiteProfiles.id,
      profile: maasSiteProfiles.name,
      secondPerson: maasSiteProfiles.secondPerson,
      siteId: maasSites.id,
      hostnames: sql<string[]>`array_agg(${nodes.hostname} order by ${nodes.hostname})`,
      holdsDisks: sql<boolean>`bool_or(${holdsDisks})`,
    })
    .from(nodes)
    .innerJoin(maasSites, eq(maasSites.id, nodes.siteId))
    .innerJoin(maasSiteProfiles, sql`${maasSiteProfiles.id} = ${ofNode}`)
    .where(where)
    .groupBy(maasSiteProfiles.id, maasSites.id)
    .orderBy(maasSiteProfiles.name);

export const profilesOfNode = (tx: Tx, id: NodeId): Promise<ProfileOfNodes[]> => profilesWhere(tx, eq(nodes.id, id));
export const profilesOfSelection = (tx: Tx, selection: NodeSelection): Promise<ProfileOfNodes[]> =>
  profilesWhere(tx, selectedNodes(selection));

/** The profiles of the nodes of a site that have these hostnames and are not deleted. */
export const profilesOfHosts = (tx: Tx, siteId: SiteId, hostnames: readonly string[]): Promise<ProfileOfNodes[]> =>
  profilesWhere(
    tx,
    and(eq(nodes.siteId, siteId), inArray(nodes.hostname, [...hostnames]), ne(nodes.status, "deleted")),
  );

/** Hosts of one site, identified by the hostnames and the BMC addresses in a request for an onboarding. */
export interface NamedHosts {
  readonly siteId: SiteId;
  readonly hostnames: readonly string[];
  readonly ipmiIps: readonly string[];
}

/** SQL that is true if a later node or a later onboarding uses the host of the deleted node, so that the disks hold the later node's data. */
const wasTaken = sql`(exists (select 1 from nodes later
    where later.site_id = ${nodes.siteId} and later.hostname = ${nodes.hostname} and later.created_at > ${nodes.createdAt})
  or exists (select 1 from node_onboardings own
    join node_onboardings later on later.site_id = own.site_id and later.ipmi_ip = own.ipmi_ip and later.node_id <> own.node_id
    where own.node_id = ${nodes.id} and later.created_at > own.created_at))`;

/**
 * The profiles of deleted nodes whose machines the hub has not released and whose hosts no later node uses. A host is identified by its hostname, or
 * by the BMC address in the request for an earlier onboarding of the host.
 */
export const profilesOfLeftHosts = (tx: Tx, { siteId, hostnames, ipmiIps }: NamedHosts): Promise<ProfileOfNodes[]> =>
  profilesWhere(
    tx,
    and(
      eq(nodes.siteId, siteId),
      eq(nodes.status, "deleted"),
      sql`(${inArray(nodes.hostname, [...hostnames])} or ${nodes.id} in (
        select o.node_id from node_onboardings o where o.site_id = ${siteId} and o.ipmi_ip = any(${sql.param([...ipmiIps])}::text[])))`,
      holdsDisks,
      sql`not ${wasTaken}`,
    ),
  );

export interface RulesOfProfile {
  readonly id: ProfileId;
  readonly profile: string;
  readonly secondPerson: readonly SecondPerson[];
}

/** The rules of all profiles of a site, the disabled ones too, because nodes keep a profile that is disabled later. */
export const rulesOfSite = (tx: Tx, siteId: SiteId): Promise<RulesOfProfile[]> =>
  tx
    .select({ id: maasSiteProfiles.id, profile: maasSiteProfiles.name, secondPerson: maasSiteProfiles.secondPerson })
    .from(maasSiteProfiles)
    .where(eq(maasSiteProfiles.siteId, siteId))
    .orderBy(maasSiteProfiles.name);
