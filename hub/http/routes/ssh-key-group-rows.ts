import type { z } from "zod";
import type { SshKeyGroup } from "../../../shared/api/ssh-keys.ts";
import type { SshKeyGroupId } from "../../../shared/ids.ts";
import { type KeySync, keySync, worstSync } from "../../allocations/key-sync.ts";
import { type KeyFacts, readKeyFacts } from "../../db/queries/allocation-keys.ts";
import type { SshKeyGroupRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";

/** The live allocations that use an SSH key group, each with the status of its keys. */
type UsesOfGroup = readonly { readonly use: KeyFacts; readonly sync: KeySync }[];

/** Returns the allocations that use each of the SSH key groups, with one SQL statement for all groups. */
export async function usesOfGroups(
  db: Db | Tx,
  groups: readonly SshKeyGroupRow[],
): Promise<(id: SshKeyGroupId) => UsesOfGroup> {
  const facts = await readKeyFacts(db, { groups: groups.map(({ id }) => id) });
  const uses = facts.map((use) => ({ use, sync: keySync(use) }));
  return (id) => uses.filter(({ use }) => use.groupIds.includes(id));
}

/** Returns the status of an SSH key group at each of its sites, and at each site with an allocation that uses the group. */
export function syncOfSites({ sites }: Pick<SshKeyGroupRow, "sites">, uses: UsesOfGroup) {
  const used = uses.flatMap(({ use }) => (use.siteId === null ? [] : [use.siteId]));
  return [...new Set([...(sites ?? []), ...used])].map((siteId) => ({
    siteId,
    ...worstSync(uses.filter(({ use }) => use.siteId === siteId).map(({ sync }) => sync)),
  }));
}

export function toGroup(row: SshKeyGroupRow, uses: UsesOfGroup): z.input<typeof SshKeyGroup> {
  const worst = worstSync(uses.map(({ sync }) => sync));
  return {
    id: row.id,
    name: row.name,
    tenant: row.tenant,
    description: row.description,
    key_ids: row.keyIds,
    site_ids: row.sites,
    status: worst.status,
    status_reason: worst.reason,
    sites: syncOfSites(row, uses).map(({ siteId, status }) => ({ site_id: siteId, status })),
    allocations: uses.length,
    created_by: row.createdBy,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}
