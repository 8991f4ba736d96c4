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

/**
 * True if the new address of the region is spelt differently, because a different spelling may be a different region. After a change of the spelling,
 * the operator can send the MAAS token again.
 */
export const isOtherAddress = (site: MaasSite, address: string | undefined): boolean =>
  address !== undefined && address !== site.apiBaseUrl;

/**
 * Resets the site to a state in which nothing is known about its region. The MAAS token was tried at the old address and is sent with each request
 * (lifecycle 3.5). The caller of `leaveRegion` therefore removes the MAAS token from the site's row in the same transaction. The credentials route
 * tries the next token before it stores the token. The change of the region is refused while the site has nodes with machines, or unfinished
 * workflows. In the other region the machines would seem deleted, or be different machines. If the same region has a new address, use `moveMaasSite`.
 * The caller of `leaveRegion` holds the site's lock.
 */
export async function leaveRegion(tx: Tx, site: MaasSite): Promise<void> {
  const bound = await countBoundNodes(tx, site.id);
  const unfinished = await countUnfinished(tx, site.id);
  if (bound > 0 || unfinished > 0) throw stillInUse(site, bound, unfinished);
  // The watcher's stored state of the site is reset first, so that no poll that is under way can add machines of the old region again.
  await watchAnew(tx, site.id);
  await forgetMachines(tx, site.id);
  await forgetRoceLinksOfSite(tx, site.id);
}

const stillInUse = (site: MaasSite, bound: number, unfinished: number): ApiError =>
  new ApiError(
    "conflict",
    `Site ${site.name} cannot get another address while it has nodes and work at ${site.apiBaseUrl}: ${bound} nodes with a machine, ${unfinished} unfinished onboardings and operations. If the new address is the same region, move the site with moveMaasSite. Otherwise remove those nodes and finish or cancel that work, or create a site of its own for the other region.`,
    {
      errors: [{ pointer: "/api_base_url", message: "belongs to a site in use" }],
      context: { bound_nodes: String(bound), unfinished_workflows: String(unfinished) },
    },
  );

/**
 * Removes the site's MAAS token from the secret store if the site's row no longer names the token. The removal keeps the hub from sending a token to
 * an address where the token was not tried.
 */
export async function removeDisownedToken({ db, secrets }: ApiDependencies, id: SiteId): Promise<void> {
  const site = await readSite(db, id);
  if (site?.apiTokenVaultPath === null) await secrets.remove(SECRET_PATHS.maasToken(id));
}
