import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { SshKeyId } from "../../../shared/ids.ts";
import { pageOfSshKeys, readSshKeyVersion } from "../../db/queries/ssh-keys.ts";
import { toSshKey } from "../../nico/ssh-key.ts";
import { parse } from "../problem.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn, siteIn } from "./inputs.ts";
import { carryOutOwn, createOwn } from "./own-route.ts";

/** An SSH key that a client creates in NICo's form belongs to the caller's tenant, or else to the tenant with the organization's name. */
export const tenantOf = ({ actor, org }: NicoCall): string => actor.tenant ?? org;

async function mustRead({ deps: { db }, actor, org }: NicoCall, id: string) {
  const { rows } = await pageOfSshKeys(db, { ids: [id], reach: actor }, { limit: 1, offset: 0 });
  const [row] = rows;
  if (row === undefined) throw new ApiError("not_found", `There is no SSH key ${id}.`);
  return toSshKey(row, org);
}

const list: Endpoint = {
  operationId: "nicoListSshKeys",
  method: "GET",
  path: "/sshkey",
  permission: "read",
  right: "read_allocations",
  place: "list",
  status: 200,
  answer: async ({ deps: { db }, actor, org, query, page }) => {
    const { rows, total } = await pageOfSshKeys(db, { reach: actor, siteId: siteIn(query) }, page);
    return { body: rows.map((row) => toSshKey(row, org)), total };
  },
};

const get: Endpoint = {
  operationId: "nicoGetSshKey",
  method: "GET",
  path: "/sshkey/{id}",
  permission: "read",
  right: "read_allocations",
  place: { of: "ssh_key", param: "id" },
  status: 200,
  answer: async (call) => ({ body: await mustRead(call, idIn(call.params, SshKeyId)) }),
};

const Create = z.object({ name: z.string(), publicKey: z.string(), sshKeyGroupId: z.uuid().nullish() });

const create: Endpoint = {
  operationId: "nicoCreateSshKey",
  method: "POST",
  path: "/sshkey",
  permission: "write",
  right: "allocate",
  place: "list",
  status: 201,
  answer: async (call) => {
    const { name, publicKey, sshKeyGroupId } = parse(Create, call.body, "body");
    if (typeof sshKeyGroupId === "string")
      throw new ApiError(
        "validation_failed",
        "Muster adds no key to a group while it stores the key. Leave sshKeyGroupId out, then name the key in sshKeyIds of the group.",
        { errors: [{ pointer: "/sshKeyGroupId", message: "is not taken here" }] },
      );
    const sites = call.actor.sites === null ? {} : { site_ids: call.actor.sites };
    const body = { name, tenant: tenantOf(call), public_key: publicKey, ...sites };
    return { body: await mustRead(call, await createOwn(call, "createSshKey", body)) };
  },
};

const Patch = z.object({ name: z.string() });

/** NICo's request to change an SSH key names no version of the key, so the hub changes the version that the key has now. */
const update: Endpoint = {
  operationId: "nicoUpdateSshKey",
  method: "PATCH",
  path: "/sshkey/{id}",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key", param: "id" },
  status: 200,
  answer: async (call) => {
    const id = idIn(call.params, SshKeyId);
    const { name } = parse(Patch, call.body, "body");
    const version = await readSshKeyVersion(call.deps.db, id);
    if (version === null) throw new ApiError("not_found", `There is no SSH key ${id}.`);
    await carryOutOwn(call, "updateSshKey", { id, body: { name }, version });
    return { body: await mustRead(call, id) };
  },
};

const remove: Endpoint = {
  operationId: "nicoDeleteSshKey",
  method: "DELETE",
  path: "/sshkey/{id}",
  permission: "write",
  right: "allocate",
  place: { of: "ssh_key", param: "id" },
  status: 202,
  answer: async (call) => {
    await carryOutOwn(call, "deleteSshKey", { id: idIn(call.params, SshKeyId) });
    return { body: { message: "Deletion request was accepted" } };
  },
};

export const nicoSshKeys = [list, get, create, update, remove];
