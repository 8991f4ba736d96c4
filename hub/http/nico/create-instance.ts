import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { AllocationId, NodeId, SiteId, SshKeyGroupId } from "../../../shared/ids.ts";
import { readAllocation } from "../../db/queries/allocations.ts";
import { listSitesAfter } from "../../db/queries/maas-sites.ts";
import { readNode } from "../../db/queries/nodes.ts";
import { listSkusAfter } from "../../db/queries/skus.ts";
import { readSshKeyGroups } from "../../db/queries/ssh-key-groups.ts";
import { vpcOf } from "../../nico/instance.ts";
import { whatCannotBe } from "../../nico/instance-request.ts";
import { stableId } from "../../nico/stable-id.ts";
import { mustBeWithin } from "../../people/place.ts";
import { parse } from "../problem.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { inForm } from "./instances.ts";
import { createOwn } from "./own-route.ts";

const MOST_SITES = 1_000;
const MOST_SKUS = 10_000;
/** The name of the tenant's account on an instance if the request names none; NICo's own requests name none. */
const LOGIN_USER = "tenant";

/**
 * The fields that NICo's requests for one instance and for several instances have in common, as far as Muster can carry them out. The fields
 * `siteId`, `loginUser` and `root` are Muster's additions, for facts that NICo takes from its networks and images.
 */
export const COMMON_FIELDS = {
  description: z.string().nullish(),
  tenantId: z.uuid(),
  vpcId: z.uuid().nullish(),
  siteId: z.uuid().nullish(),
  sshKeyGroupIds: z.array(z.uuid()).min(1).max(32),
  labels: z.record(z.string(), z.string()).nullish(),
  loginUser: z.string().nullish(),
  root: z.boolean().nullish(),
};
const Common = z.object(COMMON_FIELDS);
type Wanted = z.output<typeof Common>;

const InstanceRequest = z.object({
  ...COMMON_FIELDS,
  name: z.string().min(2).max(256),
  instanceTypeId: z.uuid().nullish(),
  machineId: z.uuid().nullish(),
  allowUnhealthyMachine: z.boolean().nullish(),
});

export const refused = (field: string, detail: string, message: string): ApiError =>
  new ApiError("validation_failed", detail, { errors: [{ pointer: `/${field}`, message }] });

/**
 * Throws unless Muster can do everything that a request for an instance in NICo's form asks. The error names every field of the request for an
 * instance that asks for something that Muster cannot do.
 */
export function mustBePossible(body: unknown): void {
  const wishes = whatCannotBe(body);
  if (wishes.length === 0) return;
  const told = wishes.map(({ field, reason }) => `${field} ${reason}`).join("; ");
  throw new ApiError("validation_failed", `Muster cannot make such an instance: ${told}. Leave these fields out.`, {
    errors: wishes.map(({ field, reason }) => ({ pointer: `/${field}`, message: reason })),
  });
}

/**
 * A tenant has no UUID in Muster, so the hub takes the tenant's name from the request's SSH key groups, and the request's `tenantId` must fit this
 * tenant.
 */
export async function tenantOf({ deps }: NicoCall, { tenantId, sshKeyGroupIds }: Wanted): Promise<string> {
  const groups = await readSshKeyGroups(
    deps.db,
    sshKeyGroupIds.map((id) => SshKeyGroupId.parse(id)),
  );
  const fitting = groups.find(({ tenant }) => stableId("tenant", tenant) === tenantId);
  if (fitting !== undefined) return fitting.tenant;
  const detail =
    "The tenant of the request has none of its key groups. Make a key group by POST /sshkeygroup, and give the tenantId of the group.";
  throw refused("sshKeyGroupIds", detail, "names no key group of the tenant");
}

/** If a request for an instance names a machine, the site is that of the machine, and the network must be the tenant's network at that site. */
async function machineOf(call: NicoCall, machineId: string, { vpcId, siteId }: Wanted, tenant: string) {
  const id = NodeId.parse(machineId);
  const place = { of: "node", body: "machineId" } as const;
  await mustBeWithin(
    call.deps.db,
    call.actor,
    { operationId: create.operationId, place },
    { params: {}, body: { machineId } },
  );
  const node = await readNode(call.deps.db, id);
  if (node === null) throw new ApiError("not_found", `There is no machine ${id}.`);
  if (typeof siteId === "string" && siteId !== node.siteId)
    throw refused(
      "siteId",
      `Machine ${id} is not at the site ${siteId}. Leave siteId out, or name its site.`,
      "is not the machine's",
    );
  if (typeof vpcId === "string" && vpcId !== vpcOf(node.siteId, tenant))
    throw refused(
      "vpcId",
      `The network ${vpcId} is not the tenant's at the site of machine ${id}. GET /vpc lists the networks.`,
      "is not there",
    );
  return { node_id: id };
}

/** In a request for an instance in NICo's form, the instance type names an SKU, and the tenant's network names the site. */
export async function typeOf(call: NicoCall, typeId: string, { vpcId, siteId }: Wanted, tenant: string) {
  const { db } = call.deps;
  const sku = (await listSkusAfter(db, null, MOST_SKUS)).find(({ id }) => stableId("sku", id) === typeId);
  if (sku === undefined)
    throw refused(
      "instanceTypeId",
      `There is no instance type ${typeId}. A machine shows its own.`,
      "names no instance type",
    );
  const all = await listSitesAfter(db, { name: undefined, after: null, reach: call.actor }, MOST_SITES);
  const named = (id: string) => (vpcId == null || vpcOf(id, tenant) === vpcId) && (siteId == null || id === siteId);
  const site = vpcId == null && siteId == null ? undefined : all.find(({ id }) => named(id));
  if (site === undefined)
    throw refused(
      "vpcId",
      "An instance of an instance type needs the network of its tenant at a site, or Muster's own field siteId. GET /vpc lists the networks.",
      "names no network of the tenant",
    );
  return { sku_id: sku.id, site_id: SiteId.parse(site.id) };
}

/** Returns the fields about the tenant's account and the instance for Muster's own request for an allocation. */
export const termsOf = ({ description, labels, loginUser, root, sshKeyGroupIds }: Wanted) => ({
  description: description === "" ? null : (description ?? null),
  labels: labels ?? {},
  login_user: loginUser ?? LOGIN_USER,
  root: root ?? true,
  ssh_key_group_ids: sshKeyGroupIds,
});

/** Gives a tenant the machine that the request names, or a free machine of the instance type that the request names. */
const create: Endpoint = {
  operationId: "nicoCreateInstance",
  method: "POST",
  path: "/instance",
  permission: "write",
  right: "allocate",
  place: "list",
  status: 201,
  answer: async (call) => {
    mustBePossible(call.body);
    const wanted = parse(InstanceRequest, call.body, "body");
    const { machineId, instanceTypeId, name } = wanted;
    if ((machineId == null) === (instanceTypeId == null))
      throw refused("machineId", "Give either machineId or instanceTypeId.", "or instanceTypeId, and not both");
    const unhealthy = wanted.allowUnhealthyMachine === true;
    if (unhealthy && machineId == null)
      throw refused("allowUnhealthyMachine", "An unhealthy machine is only given by its machineId.", "needs machineId");
    const tenant = await tenantOf(call, wanted);
    const where =
      machineId == null
        ? await typeOf(call, instanceTypeId ?? "", wanted, tenant)
        : await machineOf(call, machineId, wanted, tenant);
    const body = { ...where, ...termsOf(wanted), tenant, name, allow_unhealthy_machine: unhealthy };
    const id = AllocationId.parse(await createOwn(call, "createAllocation", body));
    const row = await readAllocation(call.deps.db, id);
    const [instance] = row === null ? [] : await inForm(call.deps.db, [row]);
    if (instance === undefined) throw new ApiError("conflict", `Instance ${id} has ended meanwhile.`);
    return { body: instance };
  },
};

export const nicoCreateInstance = [create];
