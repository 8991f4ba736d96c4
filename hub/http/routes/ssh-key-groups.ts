import { z } from "zod";
import { Tenant } from "../../../shared/api/allocations.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { SshKeyGroup, SshKeyGroupCreate, SshKeyGroupPatch } from "../../../shared/api/ssh-keys.ts";
import { SiteId, SshKeyGroupId, type SshKeyId } from "../../../shared/ids.ts";
import { changeTenantKeys } from "../../allocations/change-keys.ts";
import { detachKeyGroup } from "../../db/queries/allocations.ts";
import {
  changeSshKeyGroup,
  countSshKeyGroups,
  deleteSshKeyGroup,
  hasGroupNamed,
  insertSshKeyGroup,
  listSshKeyGroupsAfter,
  readSshKeyGroup,
  readSshKeyGroupVersion,
} from "../../db/queries/ssh-key-groups.ts";
import { lockTenantKeys, readSshKeys } from "../../db/queries/ssh-keys.ts";
import type { SshKeyGroupRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { changedMeanwhile, mustHaveSites, mustMatch, stillThere } from "./rows.ts";
import { toGroup, usesOfGroups } from "./ssh-key-group-rows.ts";

const path = "/api/v1/admin/ssh-key-groups";
const tag = "ssh-keys";
const GroupParams = z.strictObject({ id: SshKeyGroupId });
const MOST_GROUPS_OF_A_TENANT = 200;

const shown = async (db: Db | Tx, row: SshKeyGroupRow) => toGroup(row, (await usesOfGroups(db, [row]))(row.id));

async function mustFind(db: Db | Tx, id: SshKeyGroupId): Promise<SshKeyGroupRow> {
  const row = await readSshKeyGroup(db, id);
  if (row === null) throw new ApiError("not_found", `There is no SSH key group ${id}.`);
  return row;
}

const auditOf = ({ id, name, tenant }: SshKeyGroupRow, more: Readonly<Record<string, unknown>> = {}) => ({
  target: `ssh-key-groups/${id}`,
  details: { name, tenant, ...more },
});

const taken = (tenant: string, name: string): ApiError =>
  new ApiError("name_taken", `The tenant ${tenant} has a key group named ${name} already. Choose another name.`, {
    errors: [{ pointer: "/name", message: "is taken" }],
  });

/** Every key of an SSH key group must be a key of the group's tenant, and must be allowed at all sites of the group. */
async function mustFit(
  tx: Tx,
  tenant: string,
  { keyIds, sites }: { readonly keyIds: readonly SshKeyId[]; readonly sites: readonly SiteId[] | null },
): Promise<void> {
  const keys = new Map((await readSshKeys(tx, keyIds)).map((key) => [key.id, key]));
  for (const [at, id] of keyIds.entries()) {
    const key = keys.get(id);
    const fits = (of: readonly SiteId[] | null) => of === null || sites?.every((site) => of.includes(site)) === true;
    if (key?.tenant === tenant && fits(key.sites)) continue;
    throw new ApiError(
      "reference_unknown",
      `The tenant ${tenant} has no SSH key ${id} that may be used at all sites of the group. List the tenant's keys, or limit the group to the sites of its keys.`,
      { errors: [{ pointer: `/key_ids/${at}`, message: "names no key that fits the group" }] },
    );
  }
}

const unique = <T>(values: readonly T[]): T[] => [...new Set(values)];

const create = writeRoute({
  operationId: "createSshKeyGroup",
  method: "POST",
  path,
  tag,
  summary: "Create a group of SSH keys of a tenant",
  permission: "write",
  right: "allocate",
  place: { of: "site", body: "site_ids" },
  body: SshKeyGroupCreate,
  status: 201,
  response: SshKeyGroup,
  write: async ({ body, actor }, tx) => {
    const { name, tenant, description, site_ids: sites = null } = body;
    const keyIds = unique(body.key_ids);
    await mustHaveSites(tx, sites ?? []);
    await lockTenantKeys(tx, tenant);
    await mustFit(tx, tenant, { keyIds, sites });
    if ((await countSshKeyGroups(tx, tenant)) >= MOST_GROUPS_OF_A_TENANT)
      throw new ApiError("conflict", `The tenant ${tenant} has ${MOST_GROUPS_OF_A_TENANT} groups, which is the limit.`);
    const row = await insertSshKeyGroup(tx, { name, tenant, description, keyIds, sites, createdBy: actor.name });
    if (row === null) throw taken(tenant, name);
    return { body: await shown(tx, row), audit: auditOf(row, { key_ids: keyIds, site_ids: sites }) };
  },
});

const list = readRoute({
  operationId: "listSshKeyGroups",
  method: "GET",
  path,
  tag,
  summary: "List the key groups of tenants, by tenant and name, with whether the accounts have their keys",
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
  response: page(SshKeyGroup),
  read: async ({ query, actor, deps }) => {
    const after = readCursor(query.cursor, 2);
    const rows = await listSshKeyGroupsAfter(
      deps.db,
      { tenant: query.tenant, name: query.name, siteId: query.site_id, reach: actor },
      { after: after === null ? null : [after[0] ?? "", after[1] ?? ""], limit: query.limit + 1 },
    );
    const uses = await usesOfGroups(deps.db, rows);
    return pageOf(
      rows,
      query.limit,
      (row) => [row.tenant, row.name],
      (row) => toGroup(row, uses(row.id)),
    );
  },
});

const get = readRoute({
  operationId: "getSshKeyGroup",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a key group, with whether the accounts have its keys",
  permission: "read",
  right: "read_allocations",
  place: { of: "ssh_key_group", param: "id" },
  params: GroupParams,
  status: 200,
  response: SshKeyGroup,
  read: async ({ params, deps }) => {
    const row = await mustFind(deps.db, params.id);
    return new Versioned(await shown(deps.db, row), stillThere(await readSshKeyGroupVersion(deps.db, params.id)));
  },
});

const update = writeRoute({
  operationId: "updateSshKeyGroup",
  method: "PATCH",
  path: `${path}/{id}`,
  tag,
  summary: "Change a key group; the accounts of live allocations follow",
  permission: "write",
  right: "allocate",
  place: [
    { of: "ssh_key_group", param: "id" },
    { of: "site", body: "site_ids" },
  ],
  params: GroupParams,
  body: SshKeyGroupPatch,
  status: 200,
  response: SshKeyGroup,
  write: async ({ params: { id }, body, ifMatch }, tx) => {
    const expected = mustMatch(ifMatch);
    const { name, description, key_ids, site_ids: sites } = body;
    const { tenant } = await mustFind(tx, id);
    await mustHaveSites(tx, sites ?? []);
    const row = await changeTenantKeys(tx, tenant, async () => {
      const before = await mustFind(tx, id);
      const keyIds = key_ids === undefined ? undefined : unique(key_ids);
      await mustFit(tx, tenant, { keyIds: keyIds ?? before.keyIds, sites: sites ?? before.sites });
      if (name !== undefined && name !== before.name && (await hasGroupNamed(tx, tenant, name)))
        throw taken(tenant, name);
      const changed = await changeSshKeyGroup(tx, id, expected, { name, description, keyIds, sites });
      if (changed === null) throw changedMeanwhile("SSH key group");
      return changed;
    });
    const version = stillThere(await readSshKeyGroupVersion(tx, id));
    return { body: new Versioned(await shown(tx, row), version), audit: auditOf(row, body) };
  },
});

const remove = writeRoute({
  operationId: "deleteSshKeyGroup",
  method: "DELETE",
  path: `${path}/{id}`,
  tag,
  summary: "Delete a key group: its keys leave the accounts that have them by the group",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key_group", param: "id" },
  params: GroupParams,
  status: 204,
  response: z.null(),
  write: async ({ params: { id } }, tx) => {
    const row = await mustFind(tx, id);
    await changeTenantKeys(tx, row.tenant, async () => {
      await detachKeyGroup(tx, row.tenant, id);
      await deleteSshKeyGroup(tx, id);
    });
    return { body: null, audit: auditOf(row, { key_ids: row.keyIds }) };
  },
});

export const sshKeyGroupRoutes = [create, list, get, update, remove];
