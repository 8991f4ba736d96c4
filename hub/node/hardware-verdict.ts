import type { SkuHardware } from "../../shared/api/sites.ts";
import { NOT_OBSERVED } from "../../shared/condition-types.ts";
import type { Inventory } from "../../shared/inventory.ts";

export interface WantedHardware {
  readonly gpuVendor: "nvidia" | "amd" | "none";
  readonly gpusTotal: number;
  readonly hardware: SkuHardware;
}
export type SeenHardware = Pick<Inventory, "gpus" | "memory_bytes" | "disks" | "unread"> & {
  readonly interfaces: readonly Pick<Inventory["interfaces"][number], "speed_mbps">[];
};
/**
 * How far an inventory's list of GPUs can be believed. An inventory's list of GPUs is `counted` if the agent has counted the GPUs on the PCI bus,
 * `known` if an earlier comparison could already judge the host's GPUs, and `some` if it may come from an older agent, which lists only GPUs that are
 * display controllers.
 */
export type GpuCount = "counted" | "known" | "some";

export interface HardwareVerdict {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

const VENDORS = { nvidia: /nvidia/i, amd: /\bamd\b|advanced micro devices/i } as const;
const NAMES = { nvidia: "NVIDIA", amd: "AMD" } as const;

/** The kernel and the firmware keep a part of the installed memory for themselves. */
const SHARE_OF_MEMORY = 0.9;
/** A disk's size in its data sheet is rounded. */
const SHARE_OF_DISK = 0.97;
const GIB = 2 ** 30;

export const hasMemory = (bytes: number, memoryGib: number): boolean => bytes >= memoryGib * GIB * SHARE_OF_MEMORY;

const countOf = (gpus: SeenHardware["gpus"], vendor: "nvidia" | "amd"): number =>
  gpus.filter((gpu) => VENDORS[vendor].test(gpu.vendor)).length;

function gpuFaults(gpus: SeenHardware["gpus"], { gpuVendor, gpusTotal }: WantedHardware): string[] {
  const wanted = { nvidia: 0, amd: 0, ...(gpuVendor === "none" ? {} : { [gpuVendor]: gpusTotal }) };
  return (["nvidia", "amd"] as const).flatMap((vendor) => {
    const has = countOf(gpus, vendor);
    return has === wanted[vendor] ? [] : [`${has} GPUs of ${NAMES[vendor]} instead of ${wanted[vendor]}`];
  });
}

/** Gives the largest parts of the host to the first rows of the SKU, and returns each row that lacks parts, with the number of parts that it has. */
function lacking(rows: readonly { readonly count: number; readonly least: number }[], sizes: readonly number[]) {
  const left = sizes.toSorted((a, b) => b - a);
  return rows
    .toSorted((a, b) => b.least - a.least)
    .flatMap((row) => {
      const own = left.splice(0, row.count);
      const good = own.filter((size) => size >= row.least);
      // A part of the host that is too small for this row of the SKU may be large enough for the next row.
      left.unshift(...own.slice(good.length));
      return good.length < row.count ? [{ ...row, has: good.length }] : [];
    });
}

/** The parts of the host that the SKU asks for and the agent could not read. Nobody knows whether the host has them. */
function unreadParts({ unread = [] }: SeenHardware, { hardware: { disks = [], nics = [] } }: WantedHardware): string[] {
  const isAskedFor = { gpus: true, disks: disks.length > 0, interfaces: nics.length > 0 };
  return unread.filter((part) => isAskedFor[part]);
}

function otherFaults(seen: SeenHardware, { memory_gib, disks = [], nics = [] }: SkuHardware): string[] {
  const memory =
    memory_gib !== undefined && !hasMemory(seen.memory_bytes, memory_gib)
      ? [`${Math.round(seen.memory_bytes / GIB)} GiB of memory instead of ${memory_gib}`]
      : [];
  const diskRows = disks.map(({ count, min_gb }) => ({ count, min: min_gb, least: min_gb * 1e9 * SHARE_OF_DISK }));
  const nicRows = nics.map(({ count, min_gbps }) => ({ count, min: min_gbps, least: min_gbps * 1000 }));
  const isRead = (part: "disks" | "interfaces"): boolean => seen.unread?.includes(part) !== true;
  const sizes = seen.disks.map(({ bytes }) => bytes);
  const speeds = seen.interfaces.map(({ speed_mbps }) => speed_mbps ?? 0);
  return [
    ...memory,
    ...lacking(isRead("disks") ? diskRows : [], sizes).map(
      ({ has, count, least }) => `${has} disks of ${gbOf(diskRows, least)} GB instead of ${count}`,
    ),
    ...lacking(isRead("interfaces") ? nicRows : [], speeds).map(
      ({ has, count, least }) => `${has} links of ${least / 1000} Gbit/s instead of ${count}`,
    ),
  ];
}
const gbOf = (rows: readonly { readonly min: number; readonly least: number }[], least: number): number =>
  rows.find((row) => row.least === least)?.min ?? 0;

/**
 * Compares the inventory of a host with what its SKU says that a host has (decision H2). A host with fewer or more GPUs, or with GPUs of another
 * vendor, is another host than its SKU says. A host may have more memory, disks and links than its SKU says.
 */
export function compareHardware(seen: SeenHardware, wanted: WantedHardware, gpus: GpuCount): HardwareVerdict {
  const gpusSeen = countOf(seen.gpus, "nvidia") + countOf(seen.gpus, "amd");
  const asksForGpus = wanted.gpuVendor !== "none" && wanted.gpusTotal > 0;
  const unread = unreadParts(seen, wanted);
  const isUnlisted = gpus === "some" && gpusSeen === 0 && asksForGpus;
  const faults = [
    ...(isUnlisted || unread.includes("gpus") ? [] : gpuFaults(seen.gpus, wanted)),
    ...otherFaults(seen, wanted.hardware),
  ];
  if (faults.length > 0)
    return { status: "False", reason: "OtherHardware", message: `The host has ${faults.join(", ")}.`.slice(0, 1000) };
  if (unread.length > 0)
    return {
      status: "Unknown",
      reason: UNREADABLE,
      message: `The agent could not read the host's ${unread.join(", ")}. It sends its inventory again within minutes.`,
    };
  if (isUnlisted)
    return {
      status: "Unknown",
      reason: NOT_OBSERVED,
      message: `The inventory lists no GPUs, and the SKU has ${wanted.gpusTotal}. The next onboarding, reimage or soft reset counts them on the host.`,
    };
  return { status: "True", reason: AS_IN_SKU, message: "The host has what its SKU says." };
}

const AS_IN_SKU = "AsInSku";
/** A part of the hardware could not be read, so nobody knows whether the host is as its SKU says. */
export const UNREADABLE = "Unreadable";
