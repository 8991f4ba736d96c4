import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { AllocationId } from "../../../shared/ids.ts";
import { readAllocations } from "../../db/queries/allocations.ts";
import { parse } from "../problem.ts";
import { COMMON_FIELDS, mustBePossible, refused, tenantOf, termsOf, typeOf } from "./create-instance.ts";
import type { Endpoint } from "./endpoint.ts";
import { inForm } from "./instances.ts";
import { carryOutOwn } from "./own-route.ts";

/** NICo's request for several instances of one type, as far as Muster can carry it out, with NICo's own limits. */
const BatchRequest = z.object({
  ...COMMON_FIELDS,
  namePrefix: z.string().min(2).max(240),
  count: z.int().min(2).max(18),
  instanceTypeId: z.uuid(),
  topologyOptimized: z.boolean().nullish(),
  machineId: z.unknown().optional(),
  allowUnhealthyMachine: z.unknown().optional(),
});

const Created = z.object({ items: z.array(z.object({ id: AllocationId })) });

/**
 * Gives several machines of an instance type to a tenant, all or none. In NICo, `topologyOptimized` asks for machines of one NVLink domain; Muster
 * knows the racks of its machines, and takes machines of one rack instead.
 */
const createBatch: Endpoint = {
  operationId: "nicoCreateInstanceBatch",
  method: "POST",
  path: "/instance/batch",
  permission: "write",
  right: "allocate",
  place: "list",
  status: 201,
  answer: async (call) => {
    mustBePossible(call.body);
    const wanted = parse(BatchRequest, call.body, "body");
    for (const field of ["machineId", "allowUnhealthyMachine"] as const)
      if (wanted[field] != null && wanted[field] !== false)
        throw refused(
          field,
          `A batch takes any free machines, so leave ${field} out, or ask by POST /instance.`,
          "is not for a batch",
        );
    const tenant = await tenantOf(call, wanted);
    const answer = await carryOutOwn(call, "createAllocationBatch", {
      body: {
        ...(await typeOf(call, wanted.instanceTypeId, wanted, tenant)),
        ...termsOf(wanted),
        tenant,
        count: wanted.count,
        same_rack: wanted.topologyOptimized ?? true,
        name_prefix: wanted.namePrefix,
      },
    });
    const ids = Created.parse(answer).items.map(({ id }) => id);
    const instances = await inForm(call.deps.db, await readAllocations(call.deps.db, ids));
    if (instances.length < ids.length)
      throw new ApiError(
        "conflict",
        `Of the ${ids.length} new instances some have ended meanwhile. GET /instance lists the others.`,
      );
    return { body: instances };
  },
};

export const nicoCreateInstanceBatch = [createBatch];
