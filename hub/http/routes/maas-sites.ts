import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { ProfileCreate } from "../../../shared/api/profiles.ts";
import { Site, SiteCreate, SitePatch } from "../../../shared/api/sites.ts";
import { SiteId } from "../../../shared/ids.ts";
import { insertProfile, readProfile } from "../../db/queries/maas-site-profiles.ts";
import {
  changeSite as changeRow,
  disableSite,
  insertSite,
  listSitesAfter,
  lockSite as lockRow,
  readSite,
  readSiteVersion,
  setDefaultProfile,
} from "../../db/queries/maas-sites.ts";
import type { MaasSite } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { type Call, readRoute, Versioned, writeRoute } from "../route.ts";
import { profileColumns } from "./profile-columns.ts";
import { changedMeanwhile, isUniqueViolation, mustMatch, stillThere } from "./rows.ts";
import { defaultProfileNeeds } from "./second-person.ts";
import { isOtherAddress, leaveRegion, removeDisownedToken } from "./site-address.ts";
import { mustBeSoleAtAddress } from "./sole-region.ts";

export const SiteParams = z.strictObject({ id: SiteId });
export const SITES_TAG = "maas-sites";
export const SITES_PATH = "/api/v1/admin/maas-sites";

export const toSite = (site: MaasSite): z.input<typeof Site> => ({
  id: site.id,
  name: site.name,
  region_code: site.regionCode,
  api_base_url: site.apiBaseUrl,
  pxe_iface: site.pxeIface,
  pxe_vlan_vid: site.pxeVlanVid,
  node_pxe_iface: site.nodePxeIface,
  deploy_user: site.deployUser,
  deploy_ssh_iface: site.deploySshIface,
  upstream_dns_servers: site.upstreamDnsServers,
  auto_repair: site.autoRepair,
  repair_attempt_limit: site.repairAttemptLimit,
  status: site.status,
  default_profile_id: site.defaultProfileId,
  credentials: {
    maas_token: site.apiTokenVaultPath !== null,
    power: site.defaultPowerCredsVaultPath !== null,
    deploy_password: site.deployPasswordVaultPath !== null,
  },
  created_at: site.createdAt.toISOString(),
  updated_at: site.updatedAt.toISOString(),
});

function found(site: MaasSite | null, id: SiteId): MaasSite {
  if (site === null) throw new ApiError("not_found", `There is no MAAS site ${id}.`);
  return site;
}
export const mustFindSite = async (db: Db | Tx, id: SiteId): Promise<MaasSite> => found(await readSite(db, id), id);
export const lockSite = async (tx: Tx, id: SiteId): Promise<MaasSite> => found(await lockRow(tx, id), id);

const nameTaken = (name: string): ApiError =>
  new ApiError("name_taken", `A site is named ${name} already. Choose another name.`, {
    errors: [{ pointer: "/name", message: "is taken" }],
  });

const createMaasSite = writeRoute({
  operationId: "createMaasSite",
  method: "POST",
  path: SITES_PATH,
  tag: SITES_TAG,
  summary: "Create a site, with a default profile",
  permission: "write",
  right: "configure_sites",
  place: "hub",
  body: SiteCreate,
  status: 201,
  response: Site,
  write: async ({ body }, tx) => {
    const site = await insertSite(tx, siteColumns(body));
    if (site === null) throw nameTaken(body.name);
    await mustBeSoleAtAddress(tx, site, "/api_base_url");
    const profile = await insertProfile(tx, {
      ...profileColumns(ProfileCreate.parse({ name: "default" })),
      siteId: site.id,
    });
    const withDefault = profile === null ? null : await setDefaultProfile(tx, site.id, profile.id);
    return {
      body: toSite(withDefault ?? site),
      audit: { target: `maas-sites/${site.id}`, details: { name: site.name } },
    };
  },
});

const siteColumns = (body: SiteCreate) => ({
  name: body.name,
  regionCode: body.region_code,
  apiBaseUrl: body.api_base_url,
  pxeIface: body.pxe_iface,
  pxeVlanVid: body.pxe_vlan_vid,
  nodePxeIface: body.node_pxe_iface,
  deployUser: body.deploy_user,
  deploySshIface: body.deploy_ssh_iface,
  upstreamDnsServers: body.upstream_dns_servers,
  autoRepair: body.auto_repair,
  repairAttemptLimit: body.repair_attempt_limit,
});

const listMaasSites = readRoute({
  operationId: "listMaasSites",
  method: "GET",
  path: SITES_PATH,
  tag: SITES_TAG,
  summary: "List sites by name",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({ ...pageQuery, name: SiteCreate.shape.name.optional() }),
  status: 200,
  response: page(Site),
  read: async ({ query, actor, deps }) => {
    const after = readCursor(query.cursor, 1);
    const from = { name: query.name, after: after === null ? null : (after[0] ?? ""), reach: actor };
    const rows = await listSitesAfter(deps.db, from, query.limit + 1);
    return pageOf(rows, query.limit, (site) => [site.name], toSite);
  },
});

const getMaasSite = readRoute({
  operationId: "getMaasSite",
  method: "GET",
  path: `${SITES_PATH}/{id}`,
  tag: SITES_TAG,
  summary: "Read a site",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  status: 200,
  response: Site,
  read: async ({ params, deps }) => {
    const site = await mustFindSite(deps.db, params.id);
    return new Versioned(toSite(site), stillThere(await readSiteVersion(deps.db, params.id)));
  },
});

const updateMaasSite = writeRoute({
  operationId: "updateMaasSite",
  method: "PATCH",
  path: `${SITES_PATH}/{id}`,
  tag: SITES_TAG,
  summary:
    "Change, disable or enable a site; a new api_base_url deletes its MAAS token and is refused while the site has nodes or work",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: SitePatch,
  status: 200,
  response: Site,
  fixes: async ({ params, body }, tx) => {
    if (body.default_profile_id === undefined) return null;
    const { defaultProfileId } = await lockSite(tx, params.id);
    return defaultProfileId === null ? null : { of: "profile", ids: [defaultProfileId] };
  },
  secondPerson: async ({ params, body }, tx) => {
    const { defaultProfileId: from } = await mustFindSite(tx, params.id);
    return defaultProfileNeeds(tx, params.id, { from, to: body.default_profile_id });
  },
  before: ({ params, deps }) => mustFindSite(deps.db, params.id),
  write: async (call, tx) => {
    const { params, body } = call;
    const site = await lockSite(tx, params.id);
    await checkDefaultProfile(tx, params.id, body);
    const moves = isOtherAddress(site, body.api_base_url);
    await keepRegionSole(tx, site, body, moves);
    const losesToken = moves && site.apiTokenVaultPath !== null;
    const changed = await changeSite(call, tx, moves ? { apiTokenVaultPath: null } : {});
    if (moves) await leaveRegion(tx, site);
    return {
      body: new Versioned(toSite(changed), stillThere(await readSiteVersion(tx, params.id))),
      audit: {
        target: `maas-sites/${params.id}`,
        details: { ...body, ...(losesToken ? { removed: ["maas_token"] } : {}) },
      },
    };
  },
  after: async ({ params, body, deps }, before) => {
    if (isOtherAddress(before, body.api_base_url)) await removeDisownedToken(deps, params.id);
  },
});

/**
 * Refuses a change of a site if another site already has the same MAAS address. The hub looks for another site with the same MAAS address only if the
 * change enables the site or gives the site a new address. A site that already shares its MAAS address with another site can still be changed and
 * disabled.
 */
async function keepRegionSole(tx: Tx, site: MaasSite, body: SitePatch, moves: boolean): Promise<void> {
  const enables = site.status === "disabled" && body.status === "active";
  if (!moves && !enables) return;
  const taken = { id: site.id, apiBaseUrl: body.api_base_url ?? site.apiBaseUrl };
  await mustBeSoleAtAddress(tx, taken, moves ? "/api_base_url" : "/status");
}

/**
 * The caller of `checkDefaultProfile` holds the lock of the site's row. The code that disables a profile takes the lock of the site's row too, so the
 * new default profile stays enabled until the transaction ends.
 */
async function checkDefaultProfile(tx: Tx, siteId: SiteId, body: SitePatch): Promise<void> {
  if (body.default_profile_id === undefined) return;
  const profile = await readProfile(tx, siteId, body.default_profile_id);
  if (profile === null)
    throw new ApiError("reference_unknown", `Profile ${body.default_profile_id} is not one of this site.`, {
      errors: [{ pointer: "/default_profile_id", message: "is not a profile of this site" }],
    });
  if (profile.status !== "active")
    throw new ApiError("conflict", `Profile ${body.default_profile_id} is disabled. Enable it first.`, {
      errors: [{ pointer: "/default_profile_id", message: "is disabled" }],
    });
}

async function changeSite(
  { params, body, ifMatch }: Call<{ id: SiteId }, unknown, SitePatch>,
  tx: Tx,
  alsoSet: { readonly apiTokenVaultPath?: null },
): Promise<MaasSite> {
  const version = mustMatch(ifMatch);
  const {
    name,
    region_code,
    api_base_url,
    pxe_iface,
    pxe_vlan_vid,
    node_pxe_iface,
    deploy_user,
    deploy_ssh_iface,
    upstream_dns_servers,
    auto_repair,
    repair_attempt_limit,
    status,
    default_profile_id,
  } = body;
  const change = {
    name,
    regionCode: region_code,
    apiBaseUrl: api_base_url,
    pxeIface: pxe_iface,
    pxeVlanVid: pxe_vlan_vid,
    nodePxeIface: node_pxe_iface,
    deployUser: deploy_user,
    deploySshIface: deploy_ssh_iface,
    upstreamDnsServers: upstream_dns_servers,
    autoRepair: auto_repair,
    repairAttemptLimit: repair_attempt_limit,
    status,
    defaultProfileId: default_profile_id,
    ...alsoSet,
  };
  const changed = await changeRow(tx, params.id, version, change).catch((error: unknown) => {
    throw isUniqueViolation(error) ? nameTaken(name ?? "") : error;
  });
  if (changed === null) throw changedMeanwhile("site");
  return changed;
}

const disableMaasSite = writeRoute({
  operationId: "disableMaasSite",
  method: "DELETE",
  path: `${SITES_PATH}/{id}`,
  tag: SITES_TAG,
  summary: "Disable a site: it takes no new onboardings, and running ones continue; updateMaasSite enables it again",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  status: 204,
  response: z.null(),
  write: async ({ params }, tx) => {
    await mustFindSite(tx, params.id);
    await disableSite(tx, params.id);
    return { body: null, audit: { target: `maas-sites/${params.id}` } };
  },
});

export const maasSiteRoutes = [createMaasSite, listMaasSites, getMaasSite, updateMaasSite, disableMaasSite];
