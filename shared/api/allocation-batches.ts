import { z } from "zod";
import { SiteId } from "../ids.ts";
import { AllocationCreate, AllocationDetail, mustNameKeys } from "./allocations.ts";
import { SkuId } from "./sites.ts";

/**
 * The largest number of nodes in one request for allocations. A tenant who needs more than `MOST_OF_A_BATCH` nodes makes several requests, and gets
 * all nodes or none for each request.
 */
const MOST_OF_A_BATCH = 64;
/** An allocation's name has at most 256 characters, of which a hyphen and the random suffix after the prefix take seven. */
const PREFIX_CHARACTERS = 249;

const { node_id, name, allow_unhealthy_machine, ...terms } = AllocationCreate.shape;

/** A request for several allocations of one SKU at one site, of which the tenant gets all or none. */
export const AllocationBatchCreate = z
  .strictObject({
    ...terms,
    site_id: SiteId,
    sku_id: SkuId,
    count: z.int().min(1).max(MOST_OF_A_BATCH).describe("Number of nodes; the tenant gets all or none"),
    same_rack: z.boolean().describe("Take only nodes of one rack").default(false),
    name_prefix: z
      .string()
      .min(1)
      .max(PREFIX_CHARACTERS)
      .regex(/^\P{Cc}*$/u, "must hold no control characters")
      .describe(
        "Prefix of the instances' names, to which the hub adds a random end, e.g. worker-x7k2mp; none: their hostnames",
      )
      .nullable()
      .default(null),
  })
  .superRefine(mustNameKeys);
export type AllocationBatchCreate = z.output<typeof AllocationBatchCreate>;

export const AllocationBatch = z.strictObject({ items: z.array(AllocationDetail) });
