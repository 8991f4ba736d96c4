import { z } from "zod";
import type { SecondPerson } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Profile, ProfileCreate, ProfilePatch, profileTtlIsSound } from "../../../shared/api/profiles.ts";
import { ProfileId, SiteId } from "../../../shared/ids.ts";
import {
  changeProfile as changeRow,
  disableProfile as disable,
  insertProfile,
  listProfilesAfter,
  lockProfile,
  readProfile,
  readProfileVersion,
} from "../../db/queries/maas-site-profiles.ts";
import { setRoceRequired } from "../../db/queries/node-conditions.ts";
import { nodesLackingRoce } from "../../db/queries/node-roce.ts";
import type { MaasSiteProfile } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { isEndless } from "../../workflows/provisioning/disk-pattern.ts";
import type { ApiDependencies } from "../deps.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { type Call, readRoute, Versioned, writeRoute } from "../route.ts";
import { lockSite, mustFindSite, SiteParams } from "./maas-sites.ts";
import { givenProfileColumns, profileColumns, toProfile } from "./profile-columns.ts";
import { changedMeanwhile, isUniqueViolation, mustMatch, stillThere } from "./rows.ts";
import { profileChangeNeeds, profileCreationNeeds } from "./second-person.ts";

const ProfileParams = z.strictObject({ id: SiteId, profile_id: ProfileId });
const tag = "profiles";
const path = "/api/v1/admin/maas-sites/{id}/profiles";

const nameTaken = (): ApiError =>
  new ApiError("name_taken", "The site has a profile of this name already. Choose another name.", {
    errors: [{ pointer: "/name", message: "is taken" }],
  });

/**
 * Refuses a regular expression for disk names whose search might never end. If a profile had a regular expression whose search never ends, the
 * profile's first onboarding would fail.
 */
function mustEnd(pattern: string | undefined): void {
  if (pattern === undefined || !isEndless(pattern)) return;
  throw new ApiError(
    "pattern_endless",
    "The boot disk pattern has a repetition within a repetition, e.g. (a+)+. A search with it would not end for some disk names. Write it without the inner repetition, e.g. a+.",
    { errors: [{ pointer: "/boot_disk_pattern", message: "does not end on some texts" }] },
  );
}

/**
 * Without sign-in by an identity provider, anybody may hold any token, so the hub knows no second person, and nobody could approve the removal of an
 * entry from a profile's `second_person` (decision I11).
 */
function mustHaveSecondPersons({ signIn }: Pick<ApiDependencies, "signIn">, added: readonly SecondPerson[]): void {
  if (signIn.oidc !== null || added.length === 0) return;
  throw new ApiError(
    "conflict",
    `The hub has no sign-in by a provider, so nobody could approve what ${added.join(", ")} makes wait, and nobody could take it out of the profile again. Set up the sign-in of people first (MUSTER_OIDC_ISSUER).`,
    { errors: [{ pointer: "/second_person", message: "needs sign-in by a provider" }] },
  );
}

async function mustFindProfile(db: Db | Tx, siteId: SiteId, id: ProfileId): Promise<MaasSiteProfile> {
  const profile = await readProfile(db, siteId, id);
  if (profile === null) throw new ApiError("not_found", `Site ${siteId} has no profile ${id}.`);
  return profile;
}

const createProfile = writeRoute({
  operationId: "createMaasSiteProfile",
  method: "POST",
  path,
  tag,
  summary: "Create a profile of a site",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: ProfileCreate,
  status: 201,
  response: Profile,
  secondPerson: async ({ params, body }, tx) => {
    await lockSite(tx, params.id);
    return profileCreationNeeds(tx, params.id, body);
  },
  write: async ({ params, body, deps }, tx) => {
    mustEnd(body.boot_disk_pattern);
    mustHaveSecondPersons(deps, body.second_person);
    await mustFindSite(tx, params.id);
    const profile = await insertProfile(tx, { ...profileColumns(body), siteId: params.id });
    if (profile === null) throw nameTaken();
    return {
      body: toProfile(profile),
      audit: { target: `maas-site-profiles/${profile.id}`, details: { site_id: params.id, name: body.name } },
    };
  },
});

const listProfiles = readRoute({
  operationId: "listMaasSiteProfiles",
  method: "GET",
  path,
  tag,
  summary: "List a site's profiles by name",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  query: z.strictObject({ ...pageQuery, name: ProfileCreate.shape.name.optional() }),
  status: 200,
  response: page(Profile),
  read: async ({ params, query, deps }) => {
    await mustFindSite(deps.db, params.id);
    const after = readCursor(query.cursor, 1);
    const from = { name: query.name, after: after === null ? null : (after[0] ?? "") };
    const rows = await listProfilesAfter(deps.db, params.id, from, query.limit + 1);
    return pageOf(rows, query.limit, (profile) => [profile.name], toProfile);
  },
});

const getProfile = readRoute({
  operationId: "getMaasSiteProfile",
  method: "GET",
  path: `${path}/{profile_id}`,
  tag,
  summary: "Read a profile",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: ProfileParams,
  status: 200,
  response: Profile,
  read: async ({ params, deps }) => {
    const profile = await mustFindProfile(deps.db, params.id, params.profile_id);
    return new Versioned(toProfile(profile), stillThere(await readProfileVersion(deps.db, profile.id)));
  },
});

/**
 * Throws if the profile is the site's default profile. `mustNotBeDefault` locks the site's row, so that the profile cannot become the default profile
 * before the transaction ends.
 */
async function mustNotBeDefault(tx: Tx, siteId: SiteId, id: ProfileId): Promise<void> {
  const site = await lockSite(tx, siteId);
  if (site.defaultProfileId === id)
    throw new ApiError(
      "conflict",
      "This is the site's default profile, so it cannot be disabled. Make another one the default first: change the site's default_profile_id.",
    );
}

/**
 * `changeProfile` merges the patch with the stored profile and then checks the result. The rule about the enrollment token's lifetime must hold for
 * the changed profile as a whole (lifecycle 12, question 2).
 */
async function changeProfile(
  { body: patch, ifMatch, deps }: Pick<Call<unknown, unknown, ProfilePatch>, "body" | "ifMatch" | "deps">,
  tx: Tx,
  siteId: SiteId,
  id: ProfileId,
): Promise<Versioned<z.input<typeof Profile>>> {
  const version = mustMatch(ifMatch);
  const { status, ...fields } = patch;
  mustEnd(fields.boot_disk_pattern);
  if (status === "disabled") await mustNotBeDefault(tx, siteId, id);
  const before = await mustFindProfile(tx, siteId, id);
  mustHaveSecondPersons(deps, fields.second_person?.filter((entry) => !before.secondPerson.includes(entry)) ?? []);
  const merged = { ...toProfile(before), ...fields };
  if (!profileTtlIsSound(merged))
    throw new ApiError(
      "validation_failed",
      "enrollment_token_ttl_seconds must be at least deploy_timeout_seconds; otherwise the token expires before the host boots.",
      { errors: [{ pointer: "/enrollment_token_ttl_seconds", message: "is less than deploy_timeout_seconds" }] },
    );
  const change = { ...givenProfileColumns(fields), status };
  const changed = await changeRow(tx, id, version, change).catch((error: unknown) => {
    throw isUniqueViolation(error) ? nameTaken() : error;
  });
  if (changed === null) throw changedMeanwhile("profile");
  if (changed.roceRequired !== before.roceRequired)
    await setRoceRequired(tx, await nodesLackingRoce(tx, id), changed.roceRequired);
  return new Versioned(toProfile(changed), stillThere(await readProfileVersion(tx, id)));
}

const updateProfile = writeRoute({
  operationId: "updateMaasSiteProfile",
  method: "PATCH",
  path: `${path}/{profile_id}`,
  tag,
  summary: "Change a profile, or disable and enable it",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: ProfileParams,
  body: ProfilePatch,
  status: 200,
  response: Profile,
  secondPerson: async ({ params, body }, tx) => {
    await lockSite(tx, params.id);
    const profile = await lockProfile(tx, params.id, params.profile_id);
    return profile === null ? null : profileChangeNeeds(tx, profile, body);
  },
  write: async (call, tx) => {
    const { params, body } = call;
    return {
      body: await changeProfile(call, tx, params.id, params.profile_id),
      audit: { target: `maas-site-profiles/${params.profile_id}`, details: body },
    };
  },
});

const disableProfile = writeRoute({
  operationId: "disableMaasSiteProfile",
  method: "DELETE",
  path: `${path}/{profile_id}`,
  tag,
  summary: "Disable a profile",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: ProfileParams,
  status: 204,
  response: z.null(),
  write: async ({ params }, tx) => {
    await mustFindProfile(tx, params.id, params.profile_id);
    await mustNotBeDefault(tx, params.id, params.profile_id);
    await disable(tx, params.profile_id);
    return { body: null, audit: { target: `maas-site-profiles/${params.profile_id}` } };
  },
});

async function defaultProfileOf(db: Db | Tx, siteId: SiteId): Promise<MaasSiteProfile> {
  const site = await mustFindSite(db, siteId);
  if (site.defaultProfileId === null) throw new ApiError("not_found", `Site ${siteId} has no default profile.`);
  return mustFindProfile(db, siteId, site.defaultProfileId);
}

/** The route `getMaasSitePolicy` returns the site's default profile, which the specification calls the site policy (decision W4). */
const getPolicy = readRoute({
  operationId: "getMaasSitePolicy",
  method: "GET",
  path: "/api/v1/admin/maas-sites/{id}/policy",
  tag,
  summary: "Read the site's policy: its default profile",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  status: 200,
  response: Profile,
  read: async ({ params, deps }) => {
    const profile = await defaultProfileOf(deps.db, params.id);
    return new Versioned(toProfile(profile), stillThere(await readProfileVersion(deps.db, profile.id)));
  },
});

const updatePolicy = writeRoute({
  operationId: "updateMaasSitePolicy",
  method: "PATCH",
  path: "/api/v1/admin/maas-sites/{id}/policy",
  tag,
  summary: "Change the site's policy: its default profile",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: ProfilePatch,
  status: 200,
  response: Profile,
  // The lock of the site's row keeps the site's default profile the same, so the profile that decides about a second person is the profile that the
  // request changes.
  fixes: async ({ params }, tx) => {
    const { defaultProfileId } = await lockSite(tx, params.id);
    return defaultProfileId === null ? null : { of: "profile", ids: [defaultProfileId] };
  },
  secondPerson: async ({ params, body }, tx) => {
    const { id } = await defaultProfileOf(tx, params.id);
    const profile = await lockProfile(tx, params.id, id);
    return profile === null ? null : profileChangeNeeds(tx, profile, body);
  },
  write: async (call, tx) => {
    const { params, body } = call;
    const profile = await defaultProfileOf(tx, params.id);
    return {
      body: await changeProfile(call, tx, params.id, profile.id),
      audit: { target: `maas-site-profiles/${profile.id}`, details: body },
    };
  },
});

export const profileRoutes = [
  createProfile,
  listProfiles,
  getProfile,
  updateProfile,
  disableProfile,
  getPolicy,
  updatePolicy,
];
