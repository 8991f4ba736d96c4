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
/** The account of an instance whose request names no other, as NICo's requests do. */
const LOGIN_USER = "tenant";

/**
 * What NICo's requests for one instance and for several have in common, as far as Muster can carry it out. `siteId`, `loginUser` and `root` are Muster's
 * own, for what NICo knows from its networks and images.
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

/** Throws unless Muster can do all that a request asks. The error names every field that Muster cannot carry out. */
export function mustBePossible(body: unknown): void {
  const wishes = whatCannotBe(body);
  if (wishes.length === 0) return;
  const told = wishes.map(({ field, reason }) => `${field} ${reason}`).join("; ");
  throw new ApiError("validation_failed", `Muster cannot make such an instance: ${told}. Leave these fields out.`, {
    errors: wishes.map(({ field, reason }) => ({ pointer: `/${field}`, message: reason })),
  });
}

/** A tenant has no UUID in Muster, so the key groups of the request say the tenant's name, and the request's `tenantId` must fit it. */
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

/** A machine that the request names decides about the site, and the network must be that of the tenant there. */
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

/** An instance type stands for an SKU, and the tenant's network for the site. */
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

/** What Muster's own request says of the tenant's account and of the instance. */
export const termsOf = ({ description, labels, loginUser, root, sshKeyGroupIds }: Wanted) => ({
  description: description === "" ? null : (description ?? null),
  labels: labels ?? {},
  login_user: loginUser ?? LOGIN_USER,
  root: root ?? true,
  ssh_key_group_ids: sshKeyGroupIds,
});

/** Gives a machine to a tenant: the one that the request names, or a free one of an instance type. */
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
