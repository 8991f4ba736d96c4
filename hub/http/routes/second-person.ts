import type { AdoptionCreate } from "../../../shared/api/adoptions.ts";
import { SECOND_PERSON, type SecondPerson } from "../../../shared/api/approvals.ts";
import type { DecommissionBatchCreate } from "../../../shared/api/batches.ts";
import type { ProfilePatch } from "../../../shared/api/profiles.ts";
import { ProfileCreate } from "../../../shared/api/profiles.ts";
import type { NodeId, ProfileId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { keepSite } from "../../db/queries/maas-sites.ts";
import { readAdoption } from "../../db/queries/node-adoptions.ts";
import { readNode } from "../../db/queries/nodes.ts";
import { readOnboarding } from "../../db/queries/onboardings.ts";
import { given } from "../../db/queries/row-versions.ts";
import {
  type ProfileOfNodes,
  profilesOfHosts,
  profilesOfLeftHosts,
  profilesOfNode,
  profilesOfSelection,
  rulesOfSite,
} from "../../db/queries/second-person.ts";
import { readWorkflow } from "../../db/queries/workflows.ts";
import type { MaasSiteProfile } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { Asked, Fixed } from "../../people/approvals/ask-approval.ts";
import { type DecommissionAsked, someOf, touchedBy, wordsOf } from "../../people/approvals/decommission-asks.ts";
import { bothAsk, changeAsks, creationAsks, moveAsks, type ProfileAsks } from "../../people/approvals/profile-asks.ts";
import { stateOf } from "../../workflows/engine/workflow.ts";
import { toProfile } from "./profile-columns.ts";

/** The entries of `second_person` that a request concerns at the nodes of one profile. */
type Touched = (of: ProfileOfNodes) => readonly SecondPerson[];

/** Returns which entries of `second_person` in the profiles of some nodes a request concerns, each entry with the name of its profile. */
const askedBy = (profiles: readonly ProfileOfNodes[], touchedOf: Touched): Asked["because"] =>
  profiles.flatMap((of) => {
    const touched = touchedOf(of);
    const asking = SECOND_PERSON.filter((entry) => touched.includes(entry) && of.secondPerson.includes(entry));
    return asking.map((entry) => ({ entry, profile: of.profile }));
  });

function askedOf(profiles: readonly ProfileOfNodes[], touchedOf: Touched, does: string): Asked | null {
  const because = askedBy(profiles, touchedOf);
  const [first] = profiles;
  return first === undefined || because.length === 0 ? null : { siteId: first.siteId, because, does };
}

/** Says whether a decommission of one node needs a second person, by the profile that the node has now. */
export async function decommissionNeeds(tx: Tx, nodeId: NodeId, request: DecommissionAsked): Promise<Asked | null> {
  const profiles = await profilesOfNode(tx, nodeId);
  const node = `node ${profiles[0]?.hostnames[0] ?? nodeId}`;
  return askedOf(profiles, ({ holdsDisks }) => touchedBy(request, holdsDisks), wordsOf(request, node));
}

/**
 * A decommission batch needs one approval for the whole request if the profile of at least one of its nodes requires a second person. A request for a
 * batch of decommissions with `plan` only shows what it would do, so it needs no approval. `fixed` lists the nodes that match the filter of a request
 * for a batch of decommissions.
 */
export async function decommissionBatchNeeds(
  tx: Tx,
  body: DecommissionBatchCreate,
  fixed: Fixed | null,
): Promise<Asked | null> {
  if (body.plan) return null;
  const ids = (fixed?.ids as readonly NodeId[] | undefined) ?? body.node_ids ?? [];
  const selection = { siteId: body.site_id, ids };
  const profiles = await profilesOfSelection(tx, selection);
  const nodes = nodesInWords(profiles.flatMap(({ hostnames }) => hostnames));
  return askedOf(profiles, ({ holdsDisks }) => touchedBy(body.operation, holdsDisks), wordsOf(body.operation, nodes));
}

const nodesInWords = (names: readonly string[]): string =>
  names.length === 1 ? `node ${names[0]}` : `${names.length} nodes of one site (${someOf(names)})`;

interface OnboardingAsked {
  readonly site_id: SiteId;
  readonly profile_id: ProfileId;
  readonly hosts: readonly { readonly hostname: string; readonly ipmi_ip: string }[];
}

/**
 * An onboarding continues with a node that an earlier onboarding left `enrolling`. An onboarding needs a second person if its profile lacks an entry
 * of `second_person` that the node's earlier profile has. The deploy of an onboarding overwrites the system disk, so an onboarding also needs a
 * second person if a removed node with the entry `erase` left its data on the host's disks.
 */
export async function onboardingNeeds(
  tx: Tx,
  { site_id: siteId, profile_id: to, hosts }: OnboardingAsked,
): Promise<Asked | null> {
  const next = (await rulesOfSite(tx, siteId)).find(({ id }) => id === to);
  if (next === undefined) return null;
  const hostnames = hosts.map(({ hostname }) => hostname);
  const before = await profilesOfHosts(tx, siteId, hostnames);
  const lax = before.filter((from) => moveAsks(from, next).length > 0);
  const left = await profilesOfLeftHosts(tx, { siteId, hostnames, ipmiIps: hosts.map(({ ipmi_ip }) => ipmi_ip) });
  const lost = left.filter(({ secondPerson }) => secondPerson.includes("erase"));
  const because = [...lax.flatMap((from) => moveAsks(from, next)), ...askedBy(lost, () => ["erase"])];
  const does = [...laxInWords(lax, next), ...lostInWords(lost, next)].join(" ");
  return because.length === 0 ? null : { siteId, because: distinct(because), does };
}

const namesOf = (profiles: readonly ProfileOfNodes[]): string =>
  nodesInWords(profiles.flatMap(({ hostnames }) => hostnames));

function laxInWords(lax: readonly ProfileOfNodes[], next: { readonly profile: string }): string[] {
  if (lax.length === 0) return [];
  const names = lax.map(({ profile }) => profile).join(", ");
  return [`Onboard again ${namesOf(lax)} with the profile ${next.profile} in place of ${names}, which asks for more.`];
}

const lostInWords = (lost: readonly ProfileOfNodes[], next: { readonly profile: string }): string[] =>
  lost.length === 0
    ? []
    : [
        `Deploy again, with the profile ${next.profile}, the host of the removed ${namesOf(lost)}: the data that is left on its disks is lost.`,
      ];

const distinct = (because: Asked["because"]): Asked["because"] =>
  because.filter(
    ({ entry, profile }, at) => because.findIndex((one) => one.entry === entry && one.profile === profile) === at,
  );

/**
 * A clean restart releases the machine of an onboarding, and deploys it anew. Until the deploy of an onboarding has ended, the host has no data to
 * lose, so a clean restart of the onboarding before this time needs no second person.
 */
export async function restartNeeds(tx: Tx, id: WorkflowId, reason: string): Promise<Asked | null> {
  const [found, workflow] = [await readOnboarding(tx, id), await readWorkflow(tx, id)];
  if (found === null || workflow === null || typeof stateOf(workflow)["deployed_at"] !== "string") return null;
  const does = `Start the onboarding of ${found.hostname} again: release its machine, and deploy it anew. Reason: ${reason}`;
  return askedOf(await profilesOfNode(tx, found.node_id), () => ["erase"], does);
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
  return askedOf(await profilesOfNode(tx, nodeId), () => ["full_decommission"], does);
}

const changesOf = (siteId: SiteId, words: string, { because, changes }: ProfileAsks): Asked | null =>
  because.length === 0 ? null : { siteId, because, does: `${words} (${changes.join(", ")}).` };

/** A disabled profile that is enabled again is available for hosts like a new profile, so the rules for the creation of a profile also apply. */
export async function profileChangeNeeds(
  tx: Tx,
  profile: MaasSiteProfile,
  { status, ...patch }: ProfilePatch,
): Promise<Asked | null> {
  const { siteId, name } = profile;
  const before = ProfileCreate.strip().parse(toProfile(profile));
  const change = changeAsks(before, patch);
  if (status !== "active" || profile.status === "active")
    return changesOf(siteId, `Change the profile ${name}`, change);
  const others = (await rulesOfSite(tx, siteId)).filter(({ id }) => id !== profile.id);
  const enabled = { ...before, ...given(patch) } as ProfileCreate;
  const asks = creationAsks(enabled, others, ProfileCreate.parse({ name: enabled.name }));
  return changesOf(siteId, `Enable the profile ${name} again`, bothAsk(change, asks));
}

export async function profileCreationNeeds(tx: Tx, siteId: SiteId, created: ProfileCreate): Promise<Asked | null> {
  const defaults = ProfileCreate.parse({ name: created.name });
  const asks = creationAsks(created, await rulesOfSite(tx, siteId), defaults);
  return changesOf(siteId, `Create the profile ${created.name}`, asks);
}

interface NewProfile {
  readonly siteId: SiteId;
  /** The nodes that get the new profile, as their names or their number, in words for the text that the second person reads. */
  readonly nodes: string;
  /** A node without a profile counts as having the default profile of its site. */
  readonly from: ProfileId | null;
  readonly to: ProfileId | null;
}

/** A second person must agree if the nodes' new profile lacks an entry of `second_person` that their present profile has. */
async function newProfileNeeds(tx: Tx, { siteId, nodes, ...ids }: NewProfile): Promise<Asked | null> {
  // The share lock of the site's row keeps the site's default profile and the rules of the site's profiles the same until the transaction ends.
  const site = await keepSite(tx, siteId);
  const rules = await rulesOfSite(tx, siteId);
  const [from, to] = [ids.from, ids.to].map((id) => rules.find((one) => one.id === (id ?? site?.defaultProfileId)));
  if (from === undefined || to === undefined || from.id === to.id) return null;
  const because = moveAsks(from, to);
  const does = `Give ${nodes} the profile ${to.profile} in place of ${from.profile}, which asks for more.`;
  return because.length === 0 ? null : { siteId, because, does };
}

type AdoptionAsked = Pick<AdoptionCreate, "plan" | "profile_id" | "system_ids" | "hostnames">;

/**
 * Before an adoption, its MAAS machines count as having the default profile of their site, so the hub compares the adoption's profile with the
 * default profile to decide whether a second person must agree.
 */
export const adoptionNeeds = (
  tx: Tx,
  siteId: SiteId,
  { plan, profile_id: to, ...named }: AdoptionAsked,
  fixed: Fixed | null,
): Promise<Asked | null> => {
  const names = fixed?.names ?? [...(named.hostnames ?? []), ...(named.system_ids ?? [])];
  const nodes =
    names.length === 1 ? `the adopted machine ${names[0]}` : `${names.length} adopted machines (${someOf(names)})`;
  return plan ? Promise.resolve(null) : newProfileNeeds(tx, { siteId, nodes, from: null, to: to ?? null });
};

/** A node of manual mode counts as having the default profile of its site, until the node is bound to its machine with a profile. */
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

/**
 * A second person must agree if a site's new default profile lacks an entry of `second_person` that the old default profile has, because onboardings
 * take the default profile.
 */
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
