import type { KnownRegion } from "../db/queries/known-region.ts";
import type { MaasPort } from "../maas/port.ts";
import { sameAddress } from "../maas/power-address.ts";
import { wordOf } from "./plan.ts";

/**
 * The differences between the MAAS region at a site's new address and the region that Muster has read for the site so far (`known`). If there are no
 * differences between the two regions, the new address leads to the known region. If the newest event that Muster has read in the known region is
 * missing at the new address, or has other content there, `differencesFrom` reports a difference. A different MAAS region, or an older copy of the
 * known region, does not have the newest event that Muster has read. `differencesFrom` reports each machine of the known MAAS region that is missing
 * at the new address of the site's MAAS, or has another BMC there. If the hub cannot check the newest event or a machine at the new address,
 * `differencesFrom` reports a difference.
 */
export async function differencesFrom(known: KnownRegion, maas: MaasPort): Promise<string[]> {
  const { place, machines } = known;
  if (place === null || place.mark === null)
    return ["no event of the region is known yet; wait for a successful poll at its present address"];
  const [event] = await maas.events({ after: place.cursor - 1, limit: 1 });
  const differences: string[] = [];
  if (event?.id !== place.cursor || wordOf(event) !== place.mark)
    differences.push(`event ${place.cursor}, the newest known event of the region, does not exist there`);
  if (machines.length === 0) return differences;
  const powers = await maas.powerAddresses();
  for (const { systemId, ipmiIp } of machines) {
    const address = powers.get(systemId);
    if (address === undefined) differences.push(`machine ${systemId} does not exist there`);
    else if (!sameAddress(address, ipmiIp)) differences.push(`machine ${systemId} has another BMC than ${ipmiIp}`);
  }
  return differences;
}
