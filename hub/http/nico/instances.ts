import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { AllocationId } from "../../../shared/ids.ts";
import { pageOfInstances, pageOfTenants } from "../../db/queries/machine-pages.ts";
import type { AllocationRow } from "../../db/schema/index.ts";
import type { Db } from "../../db/tx.ts";
import { toInstance, vpcOf } from "../../nico/instance.ts";
import { stableId } from "../../nico/stable-id.ts";
import { parse } from "../problem.ts";
import { isOpen, toInstances } from "../routes/instance-rows.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn, siteIn } from "./inputs.ts";
import { carryOutOwn } from "./own-route.ts";

/**
 * The status of an instance in NICo's form is computed from Muster's own view of the instance, so that a tenant reads the same status in both forms
 * of the API.
 */
export async function inForm(db: Db, rows: readonly AllocationRow[]) {
  const open = rows.filter(isOpen);
  const own = new Map((await toInstances(db, open)).map((one) => [one.id, one]));
  return open.flatMap((row) => {
    const one = own.get(row.id);
    return one === undefined ? [] : [toInstance(row, one.status, one.sku_id)];
  });
}

const list: Endpoint = {
  operationId: "nicoListInstances",
  method: "GET",
  path: "/instance",
  permission: "read",
  right: "read_allocations",
  place: "list",
  status: 200,
  answer: async ({ deps: { db }, actor, query, page }) => {
    const { rows, total } = await pageOfInstances(db, { reach: actor, siteId: siteIn(query) }, page);
    return { body: await inForm(db, rows), total };
  },
};

const get: Endpoint = {
  operationId: "nicoGetInstance",
  method: "GET",
  path: "/instance/{id}",
  permission: "read",
  right: "read_allocations",
  place: { of: "allocation", param: "id" },
  status: 200,
  answer: async (call) => ({ body: await readOneInstance(call, idIn(call.params, AllocationId)) }),
};

export async function readOneInstance({ deps: { db }, actor }: NicoCall, id: AllocationId) {
  const { rows } = await pageOfInstances(db, { reach: actor, id }, { limit: 1, offset: 0 });
  const [body] = await inForm(db, rows);
  if (body === undefined) throw new ApiError("not_found", `There is no instance ${id}, or it has ended.`);
  return body;
}

/**
 * NICo's request to end an instance. Muster's own route `releaseAllocation` checks what a request to end an instance says about a fault of the
 * machine.
 */
const Release = z.object({ machineHealthIssue: z.unknown().optional(), isRepairTenant: z.boolean().nullish() });

/** Ends a tenant's use of a machine, and says whether the machine is faulty or was repaired (repair 1). */
const release: Endpoint = {
  operationId: "nicoDeleteInstance",
  method: "DELETE",
  path: "/instance/{id}",
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  status: 202,
  answer: async (call) => {
    const { machineHealthIssue: issue, isRepairTenant } = parse(Release, call.body ?? {}, "body");
    await carryOutOwn(call, "releaseAllocation", {
      id: idIn(call.params, AllocationId),
      body: {
        reason: "Ended by a client of NICo's API",
        ...(issue === undefined || issue === null ? {} : { machine_health_issue: issue }),
        ...(typeof isRepairTenant === "boolean" ? { is_repair_tenant: isRepairTenant } : {}),
      },
    });
    return { body: { message: "Deletion request was accepted" } };
  },
};

const toNetwork = ({ siteId, tenant }: { readonly siteId: string | null; readonly tenant: string }) => ({
  id: vpcOf(siteId, tenant),
  name: tenant,
  siteId,
  tenantId: stableId("tenant", tenant),
  networkVirtualizationType: "FLAT",
  status: "Ready",
});

/**
 * Lists the flat networks in NICo's form: one for each tenant with an instance at a site, and one at every site for the tenant with the
 * organization's name.
 */
const networks: Endpoint = {
  operationId: "nicoListVpcs",
  method: "GET",
  path: "/vpc",
  permission: "read",
  right: "read_allocations",
  place: "list",
  status: 200,
  answer: async ({ deps: { db }, actor, org, query, page }) => {
    const { rows, total } = await pageOfTenants(db, { reach: actor, siteId: siteIn(query), everywhere: org }, page);
    return { body: rows.map(toNetwork), total };
  },
};

export const nicoInstances = [list, get, release, networks];
