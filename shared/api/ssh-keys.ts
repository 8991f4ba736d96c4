import { z } from "zod";
import { SiteId, SshKeyGroupId, SshKeyId } from "../ids.ts";
import { KeySyncStatus } from "../key-sync.ts";
import { MOST_KEYS_OF_AN_ACCOUNT, SshPublicKey } from "../ssh-key.ts";
import { Tenant } from "./allocations.ts";
import { Timestamp } from "./values.ts";

const Name = z
  .string()
  .min(1)
  .max(256)
  .regex(/^\P{Cc}*$/u, "must hold no control characters");
const Description = z
  .string()
  .max(1_024)
  .regex(/^\P{Cc}*$/u, "must hold no control characters");
const sites = (what: string) => z.array(SiteId).min(1).max(100).describe(what);
const Members = z.array(SshKeyId).max(MOST_KEYS_OF_AN_ACCOUNT);

export const SshKeyCreate = z.strictObject({
  name: Name.describe("Name of the key, which no other key of the tenant has"),
  tenant: Tenant.describe("Name of the customer or project whose key it is"),
  public_key: SshPublicKey.describe("The public key, e.g. @id_ed25519.pub"),
  site_ids: sites("The sites at which the key may be used; without sites, at every site").optional(),
});

export const SshKeyPatch = z.strictObject({ name: Name });

/** The API's list of SSH keys does not contain the public keys themselves, because a public key may identify a person. */
export const SshKey = z.strictObject({
  id: SshKeyId,
  name: z.string(),
  tenant: z.string(),
  /** The type of the key, such as `ssh-ed25519`. */
  type: z.string(),
  /** The fingerprint of the key, as `ssh-keygen -l` prints it. */
  fingerprint: z.string(),
  site_ids: z.array(SiteId).nullable(),
  created_by: z.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export const SshKeyDetail = z.strictObject({ ...SshKey.shape, public_key: z.string() });

export const SshKeyGroupCreate = z.strictObject({
  name: Name.describe("Name of the group, which no other group of the tenant has"),
  tenant: Tenant.describe("Name of the customer or project whose group it is"),
  description: Description.default(""),
  key_ids: Members.describe("Keys of the tenant").default([]),
  site_ids: sites("The sites at which the group may be used; without sites, at every site").optional(),
});

/** A list of keys or sites in the request replaces the whole list of keys or sites of the SSH key group. */
export const SshKeyGroupPatch = z.strictObject({
  name: Name.optional(),
  description: Description.optional(),
  key_ids: Members.describe("All keys of the group from now on").optional(),
  site_ids: sites("All sites of the group from now on").optional(),
});

export const SshKeyGroup = z.strictObject({
  id: SshKeyGroupId,
  name: z.string(),
  tenant: z.string(),
  description: z.string(),
  key_ids: z.array(SshKeyId),
  site_ids: z.array(SiteId).nullable(),
  /** The worst status of the open allocations that use the SSH key group; `synced` if no open allocation uses the group. */
  status: KeySyncStatus,
  /** Why the status is not `synced`. */
  status_reason: z.string().nullable(),
  /** The status at each site of the SSH key group, and at each further site with an open allocation that uses the group. */
  sites: z.array(z.strictObject({ site_id: SiteId, status: KeySyncStatus })),
  /** The number of open allocations that use the SSH key group. */
  allocations: z.int().min(0).max(1_000_000),
  created_by: z.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
