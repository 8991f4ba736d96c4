import { SECOND_PERSON, type SecondPerson } from "../../../shared/api/approvals.ts";
import type { DecommissionBatchCreate } from "../../../shared/api/batches.ts";
import type { ProfilePatch } from "../../../shared/api/profiles.ts";
import { ProfileCreate } from "../../../shared/api/profiles.ts";
import type { NodeId, ProfileId, SiteId } from "../../../shared/ids.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { readAdoption } from "../../db/queries/node-adoptions.ts";
import { readNode } from "../../db/queries/nodes.ts";
import {
  type ProfileOfNodes,
  profilesOfNode,
  profilesOfSelection,
  rulesOfSite,
} from "../../db/queries/second-person.ts";
import type { MaasSiteProfile } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { Asked } from "../../people/approvals/ask-approval.ts";
import { type DecommissionAsked, touchedBy, wordsOf } from "../../people/approvals/decommission-asks.ts";
import { changeAsks, creationAsks, moveAsks, type ProfileAsks } from "../../people/approvals/profile-asks.ts";
import { toProfile } from "./profile-columns.ts";

/** The entries of the profiles of some nodes that `touched` names, with the profiles. */
const askedBy = (profiles: readonly ProfileOfNodes[], touched: readonly SecondPerson[]): Asked["because"] =>
  profiles.flatMap(({ profile, secondPerson }) =>
    SECOND_PERSON.filter((entry) => touched.includes(entry) && secondPerson.includes(entry)).map((entry) => ({
      entry,
      profile,
    })),
  );

function askedOf(profiles: readonly ProfileOfNodes[], touched: readonly SecondPerson[], does: string): Asked | null {
  const because = askedBy(profiles, touched);
  const [first] = profiles;
  return first === undefined || because.length === 0 ? null : { siteId: first.siteId, because, does };
}

/** Says whether a decommission of one node needs a second person, by the profile that the node has now. */
export async function decommissionNeeds(tx: Tx, nodeId: NodeId, request: DecommissionAsked): Promise<Asked | null> {
  const profiles = await profilesOfNode(tx, nodeId);
  const node = `node ${profiles[0]?.hostname ?? nodeId}`;
  return askedOf(profiles, touchedBy(request), wordsOf(request, node));
}

/** A batch needs one approval for the whole request, if any of its nodes asks for one. A plan changes nothing, and so needs none. */
export async function decommissionBatchNeeds(tx: Tx, body: DecommissionBatchCreate): Promise<Asked | null> {
  if (body.plan) return null;
  const { site_id: siteId, node_ids: ids, filter } = body;
  const profiles = await profilesOfSelection(tx, { siteId, ids, filter });
  const count = profiles.reduce((sum, one) => sum + one.nodes, 0);
  const nodes = count === 1 ? `node ${profiles[0]?.hostname}` : `${count} nodes of one site`;
  return askedOf(profiles, touchedBy(body.operation), wordsOf(body.operation, nodes));
}

/** Forcing an operation that takes a host out of the fleet needs a second person, because the host is then not cleaned, or not shown to be erased. */
export async function forceNeeds(
  tx: Tx,
  {
    nodeId,
    hostname,
    endsService,
  }: { readonly nodeId: NodeId; readonly hostname: string; readonly endsService: boolean },
  reason: string,
): Promise<Asked | null> {
  if (!endsService) return null;
  const does = `Force the decommission of node ${hostname}, without its agent and without evidence of an erase. Reason: ${reason}`;
  return askedOf(await profilesOfNode(tx, nodeId), ["full_decommission"], does);
}

const changesOf = (siteId: SiteId, words: string, { because, changes }: ProfileAsks): Asked | null =>
  because.length === 0 ? null : { siteId, because, does: `${words} (${changes.join(", ")}).` };

export const profileChangeNeeds = (profile: MaasSiteProfile, { status: _, ...patch }: ProfilePatch): Asked | null =>
  changesOf(
    profile.siteId,
    `Change the profile ${profile.name}`,
    changeAsks(ProfileCreate.strip().parse(toProfile(profile)), patch),
  );

export async function profileCreationNeeds(tx: Tx, siteId: SiteId, created: ProfileCreate): Promise<Asked | null> {
  const defaults = ProfileCreate.parse({ name: created.name });
  const asks = creationAsks(created, await rulesOfSite(tx, siteId), defaults);
  return changesOf(siteId, `Create the profile ${created.name}`, asks);
}

interface NewProfile {
  readonly siteId: SiteId;
  /** The nodes that get the profile, in words. */
  readonly nodes: string;
  /** A node without a profile is judged by the default profile of its site. */
  readonly from: ProfileId | null;
  readonly to: ProfileId | null;
}

/** The profile that nodes get must ask for as much as the profile that judged them until now, or a second person agrees. */
async function newProfileNeeds(tx: Tx, { siteId, nodes, ...ids }: NewProfile): Promise<Asked | null> {
  const site = await readSite(tx, siteId);
  const rules = await rulesOfSite(tx, siteId);
  const [from, to] = [ids.from, ids.to].map((id) => rules.find((one) => one.id === (id ?? site?.defaultProfileId)));
  if (from === undefined || to === undefined || from.id === to.id) return null;
  const because = moveAsks(from, to);
  const does = `Give ${nodes} the profile ${to.profile} in place of ${from.profile}, which asks for more.`;
  return because.length === 0 ? null : { siteId, because, does };
}

/** The machines of an adoption would otherwise be judged by the default profile of their site. */
export const adoptionNeeds = (
  tx: Tx,
  siteId: SiteId,
  { plan, profile_id: to }: { readonly plan: boolean; readonly profile_id?: ProfileId | undefined },
): Promise<Asked | null> =>
  plan ? Promise.resolve(null) : newProfileNeeds(tx, { siteId, nodes: "adopted machines", from: null, to: to ?? null });

/** A node of manual mode is judged by the default profile of its site, until it is bound to its machine with a profile. */
export async function bindingNeeds(
  tx: Tx,
  nodeId: NodeId,
  body: {
    readonly plan: boolean;
    readonly site_id?: SiteId | undefined;
    readonly profile_id?: ProfileId | undefined;
  },
): Promise<Asked | null> {
  const node = await readNode(tx, nodeId);
  const siteId = node?.siteId ?? body.site_id;
  if (body.plan || node === null || siteId === undefined) return null;
  return newProfileNeeds(tx, { siteId, nodes: `node ${node.hostname}`, from: null, to: body.profile_id ?? null });
}

export async function unbindingNeeds(tx: Tx, nodeId: NodeId): Promise<Asked | null> {
  const [node, adoption] = [await readNode(tx, nodeId), await readAdoption(tx, nodeId)];
  if (node === null || node.siteId === null || adoption === null) return null;
  const nodes = `node ${node.hostname}`;
  return newProfileNeeds(tx, { siteId: node.siteId, nodes, from: adoption.profileId, to: null });
}

/** A site's new default profile must ask for as much as the old one, or a second person agrees: onboardings take the default profile. */
export async function defaultProfileNeeds(
  tx: Tx,
  siteId: SiteId,
  ids: { readonly from: ProfileId | null; readonly to: ProfileId | undefined },
): Promise<Asked | null> {
  if (ids.to === undefined || ids.from === ids.to) return null;
  const rules = await rulesOfSite(tx, siteId);
  const [from, to] = [ids.from, ids.to].map((id) => rules.find((one) => one.id === id));
  if (from === undefined || to === undefined) return null;
  const because = moveAsks(from, to);
  const does = `Make ${to.profile} the default profile of the site in place of ${from.profile}, which asks for more.`;
  return because.length === 0 ? null : { siteId, because, does };
}
