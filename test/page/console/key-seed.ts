import { sshFingerprint } from "../../../hub/allocations/ssh-fingerprint.ts";
import { sshKeyOf } from "../../support/tenant-orders.ts";

/** The stored key and the key group of the tenant acme, and an allocation that names the group. */
export const KEY = "acacacac-0000-4000-8000-000000000001";
export const KEY_GROUP = "acacacac-0000-4000-8000-000000000002";
export const ALLOCATION = "acacacac-0000-4000-8000-000000000003";

const LINE = sshKeyOf("K");
export const KEYS: readonly string[] = [
  `insert into ssh_keys (id, tenant, name, public_key, fingerprint, created_by)
    values ('${KEY}', 'acme', 'laptop of Ada', '${LINE}', '${sshFingerprint(LINE)}', 'ann')`,
  `insert into ssh_key_groups (id, tenant, name, description, key_ids, created_by)
    values ('${KEY_GROUP}', 'acme', 'team', 'all who train', '{${KEY}}', 'ann')`,
  `update allocations set id = '${ALLOCATION}', ssh_keys = '{${LINE}}', ssh_key_group_ids = '{${KEY_GROUP}}', keys_due = true
    where node_id = 'bbbbbbbb-0000-4000-8000-000000000014'`,
];
