import type { SecondPerson } from "../../../shared/api/approvals.ts";
import type { NodeId, ProfileId, SiteId } from "../../../shared/ids.ts";
import { and, eq, inArray, ne, type SQL, sql } from "../orm.ts";
import { maasSiteProfiles, maasSites, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";
import { type NodeSelection, selectedNodes } from "./node-selection.ts";

/** What one profile says about a second person, and which of the selected nodes have the profile. */
export interface ProfileOfNodes {
  readonly id: ProfileId;
  readonly profile: string;
  readonly secondPerson: readonly SecondPerson[];
  readonly siteId: SiteId;
  readonly hostnames: readonly string[];
}

/** A node without an onboarding has the default profile of its site, so that no node is without rules of its site. */
const ofNode = sql`coalesce(${profileOf(nodes.id)}, ${maasSites.defaultProfileId})`;

const profilesWhere = (tx: Tx, where: SQL | undefined): Promise<ProfileOfNodes[]> =>
  tx
    .select({
      id: maasSiteProfiles.id,
      profile: maasSiteProfiles.name,
      secondPerson: maasSiteProfiles.secondPerson,
      siteId: maasSites.id,
      hostnames: sql<string[]>`array_agg(${nodes.hostname} order by ${nodes.hostname})`,
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

/** The profiles of the living nodes of a site with these hostnames. */
export const profilesOfHosts = (tx: Tx, siteId: SiteId, hostnames: readonly string[]): Promise<ProfileOfNodes[]> =>
  profilesWhere(
    tx,
    and(eq(nodes.siteId, siteId), inArray(nodes.hostname, [...hostnames]), ne(nodes.status, "deleted")),
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
