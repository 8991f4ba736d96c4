import { eq } from "../../hub/db/orm.ts";
import { nodes, skus } from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { TaskResult } from "../../shared/tasks/index.ts";
import { inventoryOf } from "./running-host.ts";

const VENDORS = { nvidia: "NVIDIA Corporation", amd: "Advanced Micro Devices, Inc.", none: "" } as const;

/** How many GPUs the hosts of simulated agents lack, by the host's node. */
export const MISSING_GPUS = new Map<NodeId, number>();

/** What the agent of a node's host reports about its hardware. The host has the GPUs of its node's SKU, except for those in `MISSING_GPUS`. */
export async function checkedHardware(db: Db, nodeId: NodeId): Promise<TaskResult<"node.check_hardware">> {
  const [found] = await db
    .select({ vendor: skus.gpuVendor, total: nodes.gpusTotal })
    .from(nodes)
    .innerJoin(skus, eq(skus.id, nodes.sku))
    .where(eq(nodes.id, nodeId));
  const { vendor, total } = found ?? { vendor: "none" as const, total: 0 };
  const inventory = inventoryOf({ bootId: "boot", uuid: "", macs: [], gpus: total - (MISSING_GPUS.get(nodeId) ?? 0) });
  return {
    boot_id: "boot",
    inventory: { ...inventory, gpus: inventory.gpus.map((gpu) => ({ ...gpu, vendor: VENDORS[vendor] })) },
    gpus_counted: true,
    conditions: [],
  };
}
