import { ApiError } from "../../../shared/api/errors.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import type { Tx } from "../../db/tx.ts";

/** `stillThere` throws if somebody deleted the resource after the request had read it. */
export function stillThere(version: string | null): string {
  if (version === null) throw new ApiError("not_found", "The resource no longer exists.");
  return version;
}

export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "23505";

/** A client that changes a resource must name the version that it has read (decision P4). */
export function mustMatch(ifMatch: string | null): string {
  if (ifMatch === null)
    throw new ApiError("precondition_required", "Send the ETag of the version that you change as If-Match.");
  return ifMatch;
}

export const changedMeanwhile = (what: string): ApiError =>
  new ApiError("precondition_failed", `The ${what} was changed since you read it. Read it again and decide anew.`);

export const unknownSite = (id: SiteId): ApiError =>
  new ApiError("reference_unknown", `There is no site ${id}. List the sites and use one of them.`, {
    errors: [{ pointer: "/site_id", message: "names no site" }],
  });

/** Throws unless each of the sites that limit a token or a signal sender exists. */
export async function mustHaveSites(tx: Tx, sites: readonly SiteId[]): Promise<void> {
  for (const [at, id] of sites.entries())
    if ((await readSite(tx, id)) === null)
      throw new ApiError("reference_unknown", `There is no site ${id}. List the sites and use one that exists.`, {
        errors: [{ pointer: `/site_ids/${at}`, message: "names nothing that exists" }],
      });
}
