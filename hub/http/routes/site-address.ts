import { ApiError } from "../../../shared/api/errors.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { forgetMachines } from "../../db/queries/maas-machines.ts";
import { watchAnew } from "../../db/queries/maas-site-watches.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { countBoundNodes } from "../../db/queries/node-machines.ts";
import { forgetRoceLinksOfSite } from "../../db/queries/roce-links.ts";
import { countUnfinished } from "../../db/queries/workflows.ts";
import type { MaasSite } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { SECRET_PATHS } from "../../secrets/port.ts";
import type { ApiDependencies } from "../deps.ts";

/** Compared as it is written: another spelling may be another region, and whoever spells it has the token at hand. */
export const isOtherAddress = (site: MaasSite, address: string | undefined): boolean =>
  address !== undefined && address !== site.apiBaseUrl;

/**
 * Makes the site one of which nothing is known yet. A token was tried at the old address and travels with each request (lifecycle 3.5), so the
 * caller takes it from the row in the same transaction, and the credentials route tries the next one before it is kept. Refused while a node is a
 * machine of the old region or work knows one: at another region it would seem deleted, or be another machine; `moveMaasSite` is for the same region at
 * another address. The caller holds the site's lock.
 */
export async function leaveRegion(tx: Tx, site: MaasSite): Promise<void> {
  const bound = await countBoundNodes(tx, site.id);
  const unfinished = await countUnfinished(tx, site.id);
  if (bound > 0 || unfinished > 0) throw stillInUse(site, bound, unfinished);
  // The watch first: once it has begun anew no look brings a machine of the old region back.
  await watchAnew(tx, site.id);
  await forgetMachines(tx, site.id);
  await forgetRoceLinksOfSite(tx, site.id);
}

const stillInUse = (site: MaasSite, bound: number, unfinished: number): ApiError =>
  new ApiError(
    "conflict",
    `Site ${site.name} cannot move to another address: nodes that are machines of the region at ${site.apiBaseUrl}: ${bound}; onboardings and operations there that are not over: ${unfinished}. Where it is the same region, move the site with moveMaasSite. Remove those nodes, and let the work end or cancel it; or describe the other region as a site of its own.`,
    {
      errors: [{ pointer: "/api_base_url", message: "belongs to a site in use" }],
      context: { bound_nodes: String(bound), unfinished_workflows: String(unfinished) },
    },
  );

/** Removes the site's MAAS token from the secret store where its row names none, so that no address is ever given one that was not tried there. */
export async function removeDisownedToken({ db, secrets }: ApiDependencies, id: SiteId): Promise<void> {
  const site = await readSite(db, id);
  if (site?.apiTokenVaultPath === null) await secrets.remove(SECRET_PATHS.maasToken(id));
}
