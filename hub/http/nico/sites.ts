import { ApiError } from "../../../shared/api/errors.ts";
import { SiteId } from "../../../shared/ids.ts";
import { readLastPoll } from "../../db/queries/maas-site-watches.ts";
import { listSitesAfter, readSite } from "../../db/queries/maas-sites.ts";
import type { MaasSite } from "../../db/schema/index.ts";
import type { Db } from "../../db/tx.ts";
import { stableId } from "../../nico/stable-id.ts";
import type { Endpoint } from "./endpoint.ts";
import { idIn } from "./inputs.ts";

/** The largest number of sites that the hub reads for NICo's list of sites; no hub is expected to have more. */
const MOST_SITES = 1_000;

async function toSite(db: Db, site: MaasSite, org: string) {
  const poll = await readLastPoll(db, site.id);
  return {
    id: site.id,
    name: site.name,
    org,
    infrastructureProviderId: stableId("provider", site.id),
    // Of a site's location, Muster knows only the region, and neither the city nor the country.
    location: { city: null, state: site.regionCode, country: null },
    isOnline: site.status === "active" && poll.at !== null && poll.errorCode === null,
    isSerialConsoleEnabled: false,
    isSerialConsoleSSHKeysEnabled: false,
    serialConsoleHostname: null,
    status: site.status === "active" ? "Registered" : "Error",
    created: site.createdAt.toISOString(),
    updated: site.updatedAt.toISOString(),
  };
}

const list: Endpoint = {
  operationId: "nicoListSites",
  method: "GET",
  path: "/site",
  permission: "read",
  right: "read_fleet",
  place: "list",
  status: 200,
  answer: async ({ deps: { db }, actor, page, org }) => {
    const all = await listSitesAfter(db, { name: undefined, after: null, reach: actor }, MOST_SITES);
    const shown = all.slice(page.offset, page.offset + page.limit);
    return { body: await Promise.all(shown.map((site) => toSite(db, site, org))), total: all.length };
  },
};

const get: Endpoint = {
  operationId: "nicoGetSite",
  method: "GET",
  path: "/site/{id}",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  status: 200,
  answer: async ({ deps: { db }, params, org }) => {
    const site = await readSite(db, idIn(params, SiteId));
    if (site === null) throw new ApiError("not_found", `There is no site ${params["id"]}.`);
    return { body: await toSite(db, site, org) };
  },
};

export const nicoSites = [list, get];
