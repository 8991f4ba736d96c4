import type { SkuAtSite, SkuStock } from "../db/queries/sku-stock.ts";
import { capability } from "./capability.ts";
import { stableId } from "./stable-id.ts";

/** What a host of the SKU has, as far as the SKU says it. */
function capabilitiesOf({ gpuVendor, gpuModel, gpusTotal, hardware }: SkuAtSite["sku"]) {
  const { memory_gib: memory, disks = [], nics = [] } = hardware;
  return [
    ...(gpusTotal === 0 ? [] : [capability({ type: "GPU", name: gpuModel, vendor: gpuVendor, count: gpusTotal })]),
    ...(memory === undefined ? [] : [capability({ type: "Memory", capacity: `${memory} GiB`, count: 1 })]),
    ...disks.map((disk) => capability({ type: "Storage", capacity: `${disk.min_gb} GB`, count: disk.count })),
    ...nics.map((nic) => capability({ type: "Network", capacity: `${nic.min_gbps} Gbit/s`, count: nic.count })),
  ];
}

/**
 * Muster has no quotas, so NICo's statistics tell every tenant that all machines of an SKU are assigned to the tenant, and that all usable ones can
 * be allocated.
 */
function statsOf(stocks: readonly SkuStock[]) {
  const sum = (of: "machines" | "used" | "usable") => stocks.reduce((all, stock) => all + stock[of], 0);
  const [machines, used, usable] = [sum("machines"), sum("used"), sum("usable")];
  return {
    assigned: machines,
    total: machines,
    used,
    unused: machines - used,
    unusedUsable: usable,
    maxAllocatable: usable,
  };
}

/**
 * Translates an SKU, and the sites that have machines of it, into the InstanceType of NVIDIA NICo's API. In an InstanceType, `siteId` is null if the
 * SKU has machines at several sites. The parameter `stocks` is null if nobody asks for the numbers of machines.
 */
export function toInstanceType(
  sku: SkuAtSite["sku"],
  places: readonly SkuAtSite[],
  stocks: readonly SkuStock[] | null,
) {
  const [only, ...others] = places;
  const siteId = others.length === 0 ? (only?.siteId ?? null) : null;
  return {
    id: stableId("sku", sku.id),
    name: sku.id,
    description: sku.description === "" ? null : sku.description,
    controllerMachineType: null,
    infrastructureProviderId: siteId === null ? null : stableId("provider", siteId),
    siteId,
    labels: {},
    machineCapabilities: capabilitiesOf(sku),
    ...(stocks === null ? {} : { allocationStats: statsOf(stocks) }),
    status: sku.status === "active" ? "Ready" : "Error",
    statusHistory: [],
    created: sku.createdAt.toISOString(),
    updated: sku.updatedAt.toISOString(),
  };
}
