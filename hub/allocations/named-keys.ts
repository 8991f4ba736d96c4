import { ApiError } from "../../shared/api/errors.ts";
import type { SiteId } from "../../shared/ids.ts";
import { MOST_KEYS_OF_AN_ACCOUNT } from "../../shared/ssh-key.ts";
import { type NamedKeys, readNamedKeys } from "../db/queries/allocation-keys.ts";
import { readSshKeyGroups } from "../db/queries/ssh-key-groups.ts";
import { lockTenantKeys, readSshKeys } from "../db/queries/ssh-keys.ts";
import type { Tx } from "../db/tx.ts";

/**
 * True if an object that is limited to `sites`, for example a group of SSH keys, may be used at the site. On a node without a site, only objects that
 * are limited to no sites may be used.
 */
const mayBeUsedAt = (sites: readonly SiteId[] | null, site: SiteId | null): boolean =>
  sites === null || (site !== null && sites.includes(site));

interface Request extends NamedKeys {
  readonly tenant: string;
  readonly hostname: string;
}

/**
 * Returns the keys that a request for an allocation names by stored keys and groups. `keysOfNew` throws ApiError if the tenant has no such key or group
 * for the node's site, or if the account would have no key or too many.
 */
export async function keysOfNew(tx: Tx, request: Request): Promise<string[]> {
  const { tenant, siteId, sshKeyIds, sshKeyGroupIds, hostname } = request;
  await lockTenantKeys(tx, tenant);
  const held = {
    ssh_key_ids: await readSshKeys(tx, sshKeyIds),
    ssh_key_group_ids: await readSshKeyGroups(tx, sshKeyGroupIds),
  };
  for (const [field, ids] of [
    ["ssh_key_ids", sshKeyIds],
    ["ssh_key_group_ids", sshKeyGroupIds],
  ] as const)
    for (const [at, id] of ids.entries()) {
      const found = held[field].find((one) => one.id === id);
      if (found?.tenant === tenant && mayBeUsedAt(found.sites, siteId)) continue;
      const what = field === "ssh_key_ids" ? "SSH key" : "SSH key group";
      throw new ApiError(
        "reference_unknown",
        `The tenant ${tenant} has no ${what} ${id} that may be used at the site of node ${hostname}. List the tenant's keys and groups, and name one of this site.`,
        { errors: [{ pointer: `/${field}/${at}`, message: "names nothing that may be used here" }] },
      );
    }
  const keys = await readNamedKeys(tx, request);
  if (keys.length > 0 && keys.length <= MOST_KEYS_OF_AN_ACCOUNT) return keys;
  throw new ApiError(
    "conflict",
    `The keys and groups of the request stand for ${keys.length} keys at the site of node ${hostname}; an account has 1 to ${MOST_KEYS_OF_AN_ACCOUNT}. Change the groups, or name others.`,
  );
}
