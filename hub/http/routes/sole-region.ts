import { ApiError } from "../../../shared/api/errors.ts";
import { apiBase } from "../../../shared/region-address.ts";
import type { Secret } from "../../../shared/secret.ts";
import { lockUntilCommit } from "../../db/advisory-locks.ts";
import { type RegionInUse, regionsInUse } from "../../db/queries/maas-regions.ts";
import type { MaasSite } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { hostFault } from "../../outbound/forbidden-address.ts";
import type { ApiDependencies } from "../deps.ts";

/**
 * A MAAS region may belong to only one site (lifecycle 3.1). Two sites of one region would both watch the region's machines, and two onboardings
 * might take one machine. Operators express differences within a MAAS region by several profiles of one site (lifecycle 3.6).
 */
const ADVICE = "Use profiles of one site for differences within a region.";

const sameAddress = (a: string, b: string): boolean => apiBase(a).href === apiBase(b).href;

/** Refuses a forbidden address of a MAAS region before the hub sends anything to the address. */
export function mustBeAllowed(apiBaseUrl: string, pointer: string): void {
  const fault = hostFault(new URL(apiBaseUrl));
  if (fault !== null)
    throw new ApiError("validation_failed", `A region's address ${fault}.`, { errors: [{ pointer, message: fault }] });
}

/**
 * Refuses the address of a MAAS region if another site has the address in any spelling. If `mustBeSoleAtAddress` accepts an address, it reserves the
 * address for the caller until the transaction ends. The argument `pointer` names the field of the request that contains the address.
 */
export async function mustBeSoleAtAddress(
  tx: Tx,
  { id, apiBaseUrl }: Pick<MaasSite, "id" | "apiBaseUrl">,
  pointer: string,
): Promise<void> {
  mustBeAllowed(apiBaseUrl, pointer);
  await lockUntilCommit(tx, "site_addresses");
  const other = (await regionsInUse(tx, id)).find(({ site }) => sameAddress(site.apiBaseUrl, apiBaseUrl));
  if (other !== undefined) throw isOthers(other.site, pointer);
}

/**
 * Refuses a site's first MAAS token if the site's region already belongs to another site under a different name or address. A site without a MAAS
 * token can do nothing in its region.
 */
export async function mustBeSoleInRegion(deps: ApiDependencies, site: MaasSite, token: Secret): Promise<void> {
  const [other] = await othersOfRegion(deps, site, token);
  if (other === undefined) return;
  throw isOthers(other, "/maas_token", sameAddress(other.apiBaseUrl, site.apiBaseUrl) ? "" : unlessCopy(other));
}

/**
 * Returns advice to an operator about a MAAS region that may be a copy of another site's region. If a copy of a MAAS region contains the region's
 * newest event, only the two addresses tell the copy and the region apart.
 */
const unlessCopy = ({ name }: RegionInUse["site"]): string =>
  ` If this region is a copy, write the token again after a new event in the region of site ${name}: the copy does not have that event, so the two can be distinguished.`;

function isOthers(other: RegionInUse["site"], pointer: string, unless = ""): ApiError {
  const disabled = other.status === "disabled" ? ", which is disabled and still has nodes or work there" : "";
  return new ApiError(
    "conflict",
    `This MAAS region already is site ${other.name}${disabled}, at ${other.apiBaseUrl}. Two sites would judge and claim the same machines. ${ADVICE}${unless}`,
    { errors: [{ pointer, message: `is the region of site ${other.name}` }], context: { site_id: other.id } },
  );
}

/**
 * Finds the other sites whose MAAS region is the given site's region. Two sites with the same MAAS address have the same region. For a site with
 * another address, the hub searches the given site's region for the newest MAAS event that Muster read from the other site. Only the region in which
 * a MAAS event happened, or a copy of that region, can have the event. `othersOfRegion` throws no MAAS error, and leaves out a site that it cannot
 * compare.
 */
export async function othersOfRegion(
  deps: ApiDependencies,
  site: MaasSite,
  token: Secret,
): Promise<RegionInUse["site"][]> {
  const same: RegionInUse["site"][] = [];
  for (const { site: other, place } of await regionsInUse(deps.db, site.id)) {
    const isHere = async (): Promise<boolean> => {
      if (place === null) return false;
      const known = { place, machines: [] };
      return (await deps.compareRegion({ address: site.apiBaseUrl, token, known })).length === 0;
    };
    if (sameAddress(other.apiBaseUrl, site.apiBaseUrl) || (await isHere())) same.push(other);
  }
  return same;
}

export const othersAdvice = (names: readonly string[]): string =>
  `This MAAS region is also site ${names.join(" and site ")}: two sites judge and claim the same machines. Keep one of them: remove the nodes of the others, and disable those. ${ADVICE}`;
