import { z } from "zod";
import { Tenant } from "../../../shared/api/allocations.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { SshKey, SshKeyCreate, SshKeyDetail, SshKeyPatch } from "../../../shared/api/ssh-keys.ts";
import { SiteId, SshKeyId } from "../../../shared/ids.ts";
import { sshKeyType } from "../../../shared/ssh-key.ts";
import { changeTenantKeys } from "../../allocations/change-keys.ts";
import { sshFingerprint } from "../../allocations/ssh-fingerprint.ts";
import { detachKey } from "../../db/queries/allocations.ts";
import type { Reach } from "../../db/queries/reach.ts";
import { removeFromGroups } from "../../db/queries/ssh-key-groups.ts";
import {
  countSshKeys,
  deleteSshKey,
  findTwin,
  insertSshKey,
  listSshKeysAfter,
  lockTenantKeys,
  readSshKey,
  readSshKeys,
  readSshKeyVersion,
  renameSshKey,
} from "../../db/queries/ssh-keys.ts";
import type { SshKeyRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { changedMeanwhile, mustHaveSites, mustMatch, stillThere } from "./rows.ts";

const path = "/api/v1/admin/ssh-keys";
const tag = "ssh-keys";
const KeyParams = z.strictObject({ id: SshKeyId });
const MOST_KEYS_OF_A_TENANT = 1_000;

const toKey = (row: SshKeyRow): z.input<typeof SshKey> => ({
  id: row.id,
  name: row.name,
  tenant: row.tenant,
  type: sshKeyType(row.publicKey),
  fingerprint: row.fingerprint,
  site_ids: row.sites,
  created_by: row.createdBy,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});
const toDetail = (row: SshKeyRow): z.input<typeof SshKeyDetail> => ({ ...toKey(row), public_key: row.publicKey });

async function mustFind(db: Db | Tx, id: SshKeyId): Promise<SshKeyRow> {
  const row = await readSshKey(db, id);
  if (row === null) throw new ApiError("not_found", `There is no SSH key ${id}.`);
  return row;
}

/** The audit log names an SSH key by its fingerprint, and never contains the key itself. */
const auditOf = ({ id, name, tenant, fingerprint }: SshKeyRow, more: Readonly<Record<string, unknown>> = {}) => ({
  target: `ssh-keys/${id}`,
  details: { name, tenant, fingerprint, ...more },
});

/**
 * Returns the error for an SSH key whose name or fingerprint another key of the same tenant already has. The error for a repeated SSH key names the
 * tenant's first key with the same name or fingerprint only to a caller who may see the first key.
 */
async function taken(tx: Tx, { id, name, tenant }: SshKeyRow, field: "name" | "public_key", reach: Reach) {
  const errors = [{ pointer: `/${field}`, message: "is taken" }];
  if ((await readSshKeys(tx, [id], reach)).length === 0)
    return new ApiError(
      "name_taken",
      field === "name"
        ? `The tenant ${tenant} has a key of this name outside of your sites. Choose another name.`
        : `The tenant ${tenant} has this key already, outside of your sites. Ask an operator of all sites for access to it.`,
      { errors },
    );
  return new ApiError(
    "name_taken",
    field === "name"
      ? `The tenant ${tenant} has a key named ${name} already (${id}). Choose another name.`
      : `The tenant ${tenant} has this key already, as ${name} (${id}). Use that one.`,
    { errors, context: { ssh_key_id: id } },
  );
}

const create = writeRoute({
  operationId: "createSshKey",
  method: "POST",
  path,
  tag,
  summary: "Store a public SSH key of a tenant",
  permission: "write",
  right: "allocate",
  place: { of: "site", body: "site_ids" },
  body: SshKeyCreate,
  status: 201,
  response: SshKeyDetail,
  write: async ({ body, actor }, tx) => {
    const { name, tenant, public_key: publicKey, site_ids: sites = null } = body;
    await mustHaveSites(tx, sites ?? []);
    await lockTenantKeys(tx, tenant);
    if ((await countSshKeys(tx, tenant)) >= MOST_KEYS_OF_A_TENANT)
      throw new ApiError("conflict", `The tenant ${tenant} has ${MOST_KEYS_OF_A_TENANT} keys, which is the limit.`);
    const fingerprint = sshFingerprint(publicKey);
    const twin = await findTwin(tx, tenant, { name, fingerprint });
    if (twin !== null) throw await taken(tx, twin, twin.name === name ? "name" : "public_key", actor);
    const row = await insertSshKey(tx, { name, tenant, publicKey, fingerprint, sites, createdBy: actor.name });
    return { body: toDetail(row), audit: auditOf(row, { site_ids: sites }) };
  },
});

const list = readRoute({
  operationId: "listSshKeys",
  method: "GET",
  path,
  tag,
  summary: "List the SSH keys of tenants, by tenant and name",
  permission: "read",
  right: "read_allocations",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    tenant: Tenant.optional(),
    name: z.string().min(1).max(256).optional(),
    site_id: SiteId.optional(),
  }),
  status: 200,
  response: page(SshKey),
  read: async ({ query, actor, deps }) => {
    const after = readCursor(query.cursor, 2);
    const rows = await listSshKeysAfter(
      deps.db,
      { tenant: query.tenant, name: query.name, siteId: query.site_id, reach: actor },
      { after: after === null ? null : [after[0] ?? "", after[1] ?? ""], limit: query.limit + 1 },
    );
    return pageOf(rows, query.limit, (row) => [row.tenant, row.name], toKey);
  },
});

const get = readRoute({
  operationId: "getSshKey",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read an SSH key",
  permission: "read",
  right: "read_allocations",
  place: { of: "ssh_key", param: "id" },
  params: KeyParams,
  status: 200,
  response: SshKeyDetail,
  read: async ({ params, deps }) => {
    const row = await mustFind(deps.db, params.id);
    return new Versioned(toDetail(row), stillThere(await readSshKeyVersion(deps.db, params.id)));
  },
});

const update = writeRoute({
  operationId: "updateSshKey",
  method: "PATCH",
  path: `${path}/{id}`,
  tag,
  summary: "Give an SSH key another name; the key itself never changes",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key", param: "id" },
  params: KeyParams,
  body: SshKeyPatch,
  status: 200,
  response: SshKeyDetail,
  write: async ({ params, body: { name }, ifMatch, actor }, tx) => {
    const expected = mustMatch(ifMatch);
    const before = await mustFind(tx, params.id);
    await lockTenantKeys(tx, before.tenant);
    const twin = await findTwin(tx, before.tenant, { name });
    if (twin !== null && twin.id !== params.id) throw await taken(tx, twin, "name", actor);
    const row = await renameSshKey(tx, params.id, expected, name);
    const version = stillThere(await readSshKeyVersion(tx, params.id));
    if (row === null) throw changedMeanwhile("SSH key");
    return { body: new Versioned(toDetail(row), version), audit: auditOf(row, { former_name: before.name }) };
  },
});

const remove = writeRoute({
  operationId: "deleteSshKey",
  method: "DELETE",
  path: `${path}/{id}`,
  tag,
  summary: "Delete an SSH key: it leaves its groups, and the accounts that have it",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key", param: "id" },
  params: KeyParams,
  status: 204,
  response: z.null(),
  write: async ({ params: { id } }, tx) => {
    const row = await mustFind(tx, id);
    await changeTenantKeys(tx, row.tenant, async () => {
      await removeFromGroups(tx, row.tenant, id);
      await detachKey(tx, row.tenant, id);
      await deleteSshKey(tx, id);
    });
    return { body: null, audit: auditOf(row) };
  },
});

export const sshKeyRoutes = [create, list, get, update, remove];
