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
 * True if the address in the request differs from the stored address of the site's MAAS region, even only in its spelling. Another spelling of a MAAS
 * address may lead to a different MAAS region. If a new spelling of the address leads to the site's own MAAS region, the operator only has to send
 * the site's MAAS token once more.
 */
export const isOtherAddress = (site: MaasSite, address: string | undefined): boolean =>
  address !== undefined && address !== site.apiBaseUrl;

/**
 * Deletes what the hub has read from the site's MAAS region, before the site gets the address of another region. If the site kept its MAAS token, the
 * hub would send the token to the new address, where the hub has not tested the token (lifecycle 3.5). The caller of `leaveRegion` removes the MAAS
 * token from the site's row in the transaction of `leaveRegion`, so that no new address gets the token. The route for credentials tests a new MAAS
 * token before it stores the token. `leaveRegion` throws while the site has nodes with machines, or unfinished workflows. If the site's MAAS address
 * led to another region, the site's machines would seem deleted, or their system ids would name different machines. If a site's MAAS region only gets
 * a new address, operators use the route `moveMaasSite`. The caller of `leaveRegion` holds the lock of the site's row.
 */
export async function leaveRegion(tx: Tx, site: MaasSite): Promise<void> {
  const bound = await countBoundNodes(tx, site.id);
  const unfinished = await countUnfinished(tx, site.id);
  if (bound > 0 || unfinished > 0) throw stillInUse(site, bound, unfinished);
  // `leaveRegion` resets what the hub has stored about its position in the site's MAAS events before it deletes the machines, so that no running read
  // of MAAS can add machines of the old region.
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
 * Removes the site's MAAS token from the secret store if the site's row no longer names the token. After a change of the site's MAAS address, the hub
 * uses the site's MAAS token at the new address only if a test of the token there succeeded.
 */
export async function removeDisownedToken({ db, secrets }: ApiDependencies, id: SiteId): Promise<void> {
  const site = await readSite(db, id);
  if (site?.apiTokenVaultPath === null) await secrets.remove(SECRET_PATHS.maasToken(id));
}
