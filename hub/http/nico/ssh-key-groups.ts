import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { SshKeyGroupId } from "../../../shared/ids.ts";
import { worstSync } from "../../allocations/key-sync.ts";
import type { HeldFilter } from "../../db/queries/held-by-tenant.ts";
import { pageOfSshKeyGroups } from "../../db/queries/ssh-key-groups.ts";
import { readSshKeys } from "../../db/queries/ssh-keys.ts";
import { toSshKeyGroup } from "../../nico/ssh-key.ts";
import { parse } from "../problem.ts";
import { syncOfSites, usesOfGroups } from "../routes/ssh-key-group-rows.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn, siteIn } from "./inputs.ts";
import { carryOutOwn, createOwn } from "./own-route.ts";
import { tenantOf } from "./ssh-keys.ts";

/** Reads a page of SSH key groups with their statuses, and with those of their keys that the caller may see, by a fixed number of SQL statements. */
async function groupsOn(
  { deps: { db }, actor, org }: NicoCall,
  filter: Omit<HeldFilter, "reach">,
  page: { readonly limit: number; readonly offset: number },
) {
  const { rows, total } = await pageOfSshKeyGroups(db, { ...filter, reach: actor }, page);
  const groups = rows.map(({ group }) => group);
  const uses = await usesOfGroups(db, groups);
  const keys = new Map(
    (await readSshKeys(db, [...new Set(groups.flatMap(({ keyIds }) => keyIds))], actor)).map((key) => [key.id, key]),
  );
  const body = rows.map(({ group, version }) =>
    toSshKeyGroup(group, {
      org,
      version,
      keys: group.keyIds.flatMap((id) => keys.get(id) ?? []),
      status: worstSync(uses(group.id).map(({ sync }) => sync)).status,
      sites: syncOfSites(group, uses(group.id)),
    }),
  );
  return { body, total };
}

async function mustRead(call: NicoCall, id: string) {
  const { body } = await groupsOn(call, { ids: [id] }, { limit: 1, offset: 0 });
  const [group] = body;
  if (group === undefined) throw new ApiError("not_found", `There is no SSH key group ${id}.`);
  return group;
}

const list: Endpoint = {
  operationId: "nicoListSshKeyGroups",
  method: "GET",
  path: "/sshkeygroup",
  permission: "read",
  right: "read_allocations",
  place: "list",
  status: 200,
  answer: async (call) => groupsOn(call, { siteId: siteIn(call.query) }, call.page),
};

const get: Endpoint = {
  operationId: "nicoGetSshKeyGroup",
  method: "GET",
  path: "/sshkeygroup/{id}",
  permission: "read",
  right: "read_allocations",
  place: { of: "ssh_key_group", param: "id" },
  status: 200,
  answer: async (call) => ({ body: await mustRead(call, idIn(call.params, SshKeyGroupId)) }),
};

const fields = {
  description: z.string().nullish(),
  siteIds: z.array(z.string()).nullish(),
  sshKeyIds: z.array(z.string()).nullish(),
};
const Create = z.object({ name: z.string(), ...fields });
/** A request in NICo's form to change an SSH key group must name the version of the group that it changes. */
const Patch = z.object({ name: z.string().nullish(), ...fields, version: z.string() });

/**
 * Translates NICo's fields of an SSH key group into Muster's fields. The function `own` omits each field that the request leaves out or sets to null.
 */
const own = ({ name, description, siteIds, sshKeyIds }: Partial<z.output<typeof Patch>>) => ({
  ...(name == null ? {} : { name }),
  ...(description == null ? {} : { description }),
  ...(sshKeyIds == null ? {} : { key_ids: sshKeyIds }),
  ...(siteIds == null || siteIds.length === 0 ? {} : { site_ids: siteIds }),
});

const create: Endpoint = {
  operationId: "nicoCreateSshKeyGroup",
  method: "POST",
  path: "/sshkeygroup",
  permission: "write",
  right: "allocate",
  place: "list",
  status: 201,
  answer: async (call) => {
    const sites = call.actor.sites === null ? {} : { site_ids: call.actor.sites };
    const body = { tenant: tenantOf(call), ...sites, ...own(parse(Create, call.body, "body")) };
    return { body: await mustRead(call, await createOwn(call, "createSshKeyGroup", body)) };
  },
};

const update: Endpoint = {
  operationId: "nicoUpdateSshKeyGroup",
  method: "PATCH",
  path: "/sshkeygroup/{id}",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key_group", param: "id" },
  status: 200,
  answer: async (call) => {
    const id = idIn(call.params, SshKeyGroupId);
    const { version, ...change } = parse(Patch, call.body, "body");
    if (change.siteIds?.length === 0)
      throw new ApiError(
        "validation_failed",
        "A key group without sites may be used at every site in Muster, so siteIds cannot become empty. Name the sites that stay, or delete the group.",
        { errors: [{ pointer: "/siteIds", message: "must name a site" }] },
      );
    await carryOutOwn(call, "updateSshKeyGroup", { id, body: own(change), version });
    return { body: await mustRead(call, id) };
  },
};

const remove: Endpoint = {
  operationId: "nicoDeleteSshKeyGroup",
  method: "DELETE",
  path: "/sshkeygroup/{id}",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key_group", param: "id" },
  status: 202,
  answer: async (call) => {
    await carryOutOwn(call, "deleteSshKeyGroup", { id: idIn(call.params, SshKeyGroupId) });
    return { body: { message: "Deletion request was accepted" } };
  },
};

export const nicoSshKeyGroups = [list, get, create, update, remove];
