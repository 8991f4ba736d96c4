import type { KeySyncStatus } from "../../shared/key-sync.ts";
import type { SshKeyGroupRow, SshKeyRow } from "../db/schema/index.ts";
import { stableId } from "./stable-id.ts";

/** NICo's form of an SSH key contains no key text, and contains the fingerprint without the hash's name (`SHA256:`). */
export const toSshKey = (row: SshKeyRow, org: string) => ({
  id: row.id,
  name: row.name,
  org,
  tenantId: stableId("tenant", row.tenant),
  fingerprint: row.fingerprint.replace(/^SHA256:/, ""),
  created: row.createdAt.toISOString(),
  updated: row.updatedAt.toISOString(),
});

const STATUS = { synced: "Synced", syncing: "Syncing", error: "Error" } as const satisfies Record<
  KeySyncStatus,
  string
>;

/** What NICo's form of an SSH key group shows besides the group's own row. */
export interface GroupParts {
  readonly org: string;
  readonly version: string;
  readonly keys: readonly SshKeyRow[];
  readonly status: KeySyncStatus;
  readonly sites: readonly { readonly siteId: string; readonly status: KeySyncStatus }[];
}

/** The hub computes the status of an SSH key group and records no changes of it, so the group has no history of its status. */
export function toSshKeyGroup(row: SshKeyGroupRow, { org, version, keys, status, sites }: GroupParts) {
  const times = { created: row.createdAt.toISOString(), updated: row.updatedAt.toISOString() };
  return {
    id: row.id,
    name: row.name,
    description: row.description === "" ? null : row.description,
    org,
    tenantId: stableId("tenant", row.tenant),
    version,
    status: STATUS[status],
    statusHistory: [],
    sshKeys: keys.map((key) => toSshKey(key, org)),
    siteAssociations: sites.map((site) => ({ site: { id: site.siteId }, status: STATUS[site.status], ...times })),
    ...times,
  };
}
