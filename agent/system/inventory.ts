import { readFile } from "node:fs/promises";
import type { Systeminformation } from "systeminformation";
import type { Inventory } from "../../shared/inventory.ts";
import type { Log } from "../log.ts";
import { type PciGpu, readPciGpus } from "./pci-gpus.ts";

const PROBE_TIMEOUT_MS = 20_000;

/**
 * Several probes read the host's hardware, each with its own time-out. The agent logs a failed hardware probe and leaves that part of the inventory
 * empty. The agent loads the library `systeminformation` only here, so that an idle agent needs less memory.
 */
export async function readInventory(
  root: string,
  { hostname, bootId }: { readonly hostname: string; readonly bootId: string },
  log: Log,
): Promise<Inventory> {
  const si = await import("systeminformation");
  const probe = async <T>(what: string, read: () => Promise<T>, empty: T): Promise<T> => {
    const deadline = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error(`no answer in ${PROBE_TIMEOUT_MS} ms`)), PROBE_TIMEOUT_MS).unref(),
    );
    try {
      return await Promise.race([read(), deadline]);
    } catch (error) {
      log.warn("an inventory probe failed", { what, error });
      return empty;
    }
  };
  const system = await probe("system", () => si.system(), null);
  const os = await probe("os", () => si.osInfo(), null);
  const cpu = await probe("cpu", () => si.cpu(), null);
  const memory = await probe("memory", () => si.mem(), null);
  const disks = await probe("disks", () => si.diskLayout(), []);
  const nics = await probe("interfaces", async () => [await si.networkInterfaces()].flat(), []);
  const graphics = await probe("gpus", () => si.graphics(), null);
  const listed = (graphics?.controllers ?? []).map((gpu) => ({
    vendor: text(gpu.vendor),
    model: text(gpu.model),
    bus: text(gpu.busAddress),
    memory_bytes: vramOf(gpu.vram),
  }));
  const onBus = (await probe("PCI bus", () => readPciGpus(root), null)) ?? [];
  return {
    hostname,
    boot_id: bootId,
    system: { manufacturer: text(system?.manufacturer), model: text(system?.model), uuid: text(system?.uuid) },
    os: { distro: text(os?.distro), release: text(os?.release), kernel: text(os?.kernel), arch: text(os?.arch) },
    cpu: { model: text(cpu?.brand), cores: Math.trunc(cpu?.cores ?? 0), sockets: Math.trunc(cpu?.processors ?? 0) },
    memory_bytes: memory?.total ?? 0,
    disks: disks.slice(0, 256).map((disk) => ({
      name: text(disk.device),
      model: text(disk.name),
      serial: text(disk.serialNum),
      bytes: disk.size ?? 0,
      kind: text(disk.type),
    })),
    interfaces: nics.slice(0, 256).map(describeNic),
    gpus: await Promise.all(
      withGpusOnBus(listed, onBus)
        .slice(0, 64)
        .map(async (gpu) => ({ ...gpu, memory_bytes: (await amdMemoryOf(gpu.bus)) ?? gpu.memory_bytes })),
    ),
  };
}

const VENDOR_NAMES = { nvidia: "NVIDIA Corporation", amd: "Advanced Micro Devices, Inc. [AMD/ATI]" } as const;
const placeOf = (address: string): string => address.toLowerCase().replace(/^0{4,8}:/, "");

/**
 * Adds the GPUs that the library does not list, because it knows only devices with the class of a display controller. Many GPUs for computing have
 * another class.
 */
export function withGpusOnBus(listed: Inventory["gpus"], onBus: readonly PciGpu[]): Inventory["gpus"] {
  const places = new Set(listed.map(({ bus }) => placeOf(bus)));
  const added = onBus
    .filter(({ address }) => !places.has(placeOf(address)))
    .map(({ vendor, address }) => ({ vendor: VENDOR_NAMES[vendor], model: "", bus: address, memory_bytes: null }));
  // The 64 places of the inventory are for GPUs rather than for the screen of the BMC.
  return [
    ...listed.filter(({ vendor }) => isGpuVendor(vendor)),
    ...added,
    ...listed.filter(({ vendor }) => !isGpuVendor(vendor)),
  ];
}

const isGpuVendor = (vendor: string): boolean => /nvidia|\bamd\b|advanced micro devices/i.test(vendor);

const vramOf = (mebibytes: number | null | undefined): number | null =>
  mebibytes === null || mebibytes === undefined ? null : mebibytes * 1024 * 1024;

/**
 * Returns how much memory the amdgpu driver states for the GPU at the PCI address, or null if the driver states nothing. The library
 * `systeminformation` knows of an AMD GPU only the window by which the processor reaches the memory.
 */
export async function amdMemoryOf(address: string, devices = "/sys/bus/pci/devices"): Promise<number | null> {
  const [, domain = "0000", rest] = /^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}[.][0-7])$/i.exec(address) ?? [];
  if (rest === undefined) return null;
  try {
    const bytes = Number(await readFile(`${devices}/${`${domain}:${rest}`.toLowerCase()}/mem_info_vram_total`, "utf8"));
    return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : null;
  } catch {
    // Only the amdgpu driver has such a file.
    return null;
  }
}

const text = (value: string | undefined | null): string => (value ?? "").slice(0, 200);

const describeNic = (nic: Systeminformation.NetworkInterfacesData) => ({
  name: text(nic.iface),
  mac: text(nic.mac).toLowerCase(),
  ipv4: nic.ip4 === "" ? [] : [text(nic.ip4)],
  // Without a link or a known speed, the kernel reports nothing or a negative number as the speed of a network interface.
  speed_mbps: nic.speed !== null && nic.speed > 0 ? nic.speed : null,
});
