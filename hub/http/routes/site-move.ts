import { timingSafeEqual } from "node:crypto";
import { ApiError } from "../../../shared/api/errors.ts";
import { Site, SiteMove } from "../../../shared/api/sites.ts";
import { Secret } from "../../../shared/secret.ts";
import { readKnownRegion } from "../../db/queries/known-region.ts";
import { requestSweep } from "../../db/queries/maas-site-watches.ts";
import { changeSite, readSiteVersion } from "../../db/queries/maas-sites.ts";
import type { MaasSite } from "../../db/schema/index.ts";
import type { ApiDependencies } from "../deps.ts";
import { writeRoute } from "../route.ts";
import { lockSite, mustFindSite, SITES_PATH, SITES_TAG, SiteParams, toSite } from "./maas-sites.ts";
import { stillThere } from "./rows.ts";
import { mustBeUsable } from "./site-credentials.ts";
import { mustBeAllowed, mustBeSoleAtAddress } from "./sole-region.ts";

/**
 * Gives a site the new address of its MAAS region, for example with another name or port, while the site's nodes are in service. A request to move a
 * site to a new MAAS address must contain the site's MAAS token, because the hub sends no stored token to a new address (lifecycle 3.5). A move of a
 * site changes only the address of its MAAS region. After the move of a site to a new MAAS address, its running workflows continue, and the hub
 * continues to read the MAAS events at the stored position.
 */
const moveMaasSite = writeRoute({
  operationId: "moveMaasSite",
  method: "POST",
  path: `${SITES_PATH}/{id}/move`,
  tag: SITES_TAG,
  summary:
    "Move a site to its region's new address, with all nodes and work; refused unless events and machines prove that it is the same region",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: SiteMove,
  status: 200,
  response: Site,
  before: async ({ params, body, deps }) => {
    mustBeAllowed(body.api_base_url, "/api_base_url");
    const version = stillThere(await readSiteVersion(deps.db, params.id));
    const site = await mustFindSite(deps.db, params.id);
    const token = await mustBeItsToken(deps, site, body.maas_token);
    await mustBeUsable(deps, { ...site, apiBaseUrl: body.api_base_url }, token);
    await mustBeItsRegion(deps, site, body.api_base_url, token);
    return { from: site.apiBaseUrl, version };
  },
  write: async ({ params, body }, tx, { from, version }) => {
    // `moveMaasSite` locks first the site and then the addresses of all sites, as the route `updateMaasSite` does, so that the two routes cannot
    // deadlock.
    await lockSite(tx, params.id);
    await mustBeSoleAtAddress(tx, { id: params.id, apiBaseUrl: body.api_base_url }, "/api_base_url");
    // `moveMaasSite` changes the site only if the site still has the version that `moveMaasSite` read before it tested the MAAS token. A new version
    // of the site may mean that somebody has stored another MAAS token, which nobody has tested at the site's new address.
    const site = await changeSite(tx, params.id, version, { apiBaseUrl: body.api_base_url });
    if (site === null)
      throw new ApiError(
        "conflict",
        "The site or its credentials were changed while the region was compared. Read the site again and decide anew.",
      );
    await requestSweep(tx, params.id);
    const details = { from, to: body.api_base_url };
    return { body: toSite(site), audit: { target: `maas-sites/${params.id}`, reason: body.reason, details } };
  },
});

async function mustBeItsToken({ secrets }: ApiDependencies, site: MaasSite, said: string): Promise<Secret> {
  const { token = "" } = site.apiTokenVaultPath === null ? {} : await secrets.read(site.apiTokenVaultPath);
  const [is, given] = [Buffer.from(token), Buffer.from(said)];
  if (is.length === given.length && timingSafeEqual(is, given)) return new Secret(said);
  throw new ApiError(
    "conflict",
    `This is not the MAAS token of site ${site.name}, so it was sent nowhere. Send the token that the site has now; write a new token after the site has moved.`,
    { errors: [{ pointer: "/maas_token", message: "is not the site's token" }] },
  );
}

/** The largest number of differences that an error names between the region at the new address and the region that Muster knows. */
const NAMED = 5;

async function mustBeItsRegion(deps: ApiDependencies, site: MaasSite, address: string, token: Secret): Promise<void> {
  const known = await readKnownRegion(deps.db, site.id);
  const differences = await deps.compareRegion({ address, token, known });
  if (differences.length === 0) return;
  const more = differences.length > NAMED ? `; and ${differences.length - NAMED} more` : "";
  throw new ApiError(
    "conflict",
    `The region at ${address} is not proven to be the region of site ${site.name}: ${differences.slice(0, NAMED).join("; ")}${more}. If it is another region, create a site of its own for it.`,
    { errors: [{ pointer: "/api_base_url", message: "is not proven to be the same region" }] },
  );
}

export const siteMoveRoutes = [moveMaasSite];
