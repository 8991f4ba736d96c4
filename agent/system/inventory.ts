import { totalmem } from "node:os";
import { join } from "node:path";
import type { Inventory } from "../../shared/inventory.ts";
import type { Log } from "../log.ts";
import { readText } from "./files.ts";
import type { GpuDetails } from "./gpu-details.ts";
import { uptimeSeconds } from "./host.ts";
import { readInterfaces } from "./nics.ts";
import { readPciGpus } from "./pci-gpus.ts";
import { readHardware } from "./storage/block-devices.ts";

const PROBE_TIMEOUT_MS = 20_000;
type Part = NonNullable<Inventory["unread"]>[number];

/**
 * Several probes read the host's hardware, each with its own time-out. The agent logs a failed probe. The agent reads the values that the hub
 * compares with the SKU from the kernel's files, so that no tool, driver or disk can block it. The inventory names each part that the agent could not
 * read. The agent loads the library `systeminformation` only when it reads the inventory, so that an idle agent needs less memory.
 */
export async function readInventory(
  root: string,
  { hostname, bootId }: { readonly hostname: string; readonly bootId: string },
  details: GpuDetails,
  log: Log,
): Promise<Inventory> {
  const read_at_uptime = uptimeSeconds();
  const si = await import("systeminformation");
  const probe = async <T>(what: string, read: () => Promise<T>): Promise<T | null> => {
    const deadline = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error(`no answer in ${PROBE_TIMEOUT_MS} ms`)), PROBE_TIMEOUT_MS).unref(),
    );
    try {
      return await Promise.race([read(), deadline]);
    } catch (error) {
      log.warn("an inventory probe failed", { what, error });
      return null;
    }
  };
  const unread: Part[] = [];
  const part = async <T>(name: Part, read: () => Promise<T[]>): Promise<T[]> => {
    const found = await probe(name, read);
    if (found === null) unread.push(name);
    return found ?? [];
  };
  const system = await probe("system", () => si.system());
  const os = await probe("os", () => si.osInfo());
  const cpu = await probe("cpu", () => si.cpu());
  const disks = await part("disks", () => readDisks(root));
  const interfaces = await part("interfaces", () => readInterfaces(root));
  let gpus_counted = false;
  const onBus = await part("gpus", async () => {
    const found = await readPciGpus(root);
    gpus_counted = found !== null;
    return found ?? [];
  });
  return {
    hostname,
    boot_id: bootId,
    read_at_uptime,
    system: { manufacturer: text(system?.manufacturer), model: text(system?.model), uuid: text(system?.uuid) },
    os: { distro: text(os?.distro), release: text(os?.release), kernel: text(os?.kernel), arch: text(os?.arch) },
    cpu: { model: text(cpu?.brand), cores: Math.trunc(cpu?.cores ?? 0), sockets: Math.trunc(cpu?.processors ?? 0) },
    memory_bytes: totalmem(),
    disks: disks.slice(0, 256),
    interfaces: interfaces.slice(0, 256),
    gpus: await details.of(onBus.slice(0, 64)),
    gpus_counted,
    ...(unread.length === 0 ? {} : { unread }),
  };
}

const text = (value: string | undefined | null): string => (value ?? "").slice(0, 200);

/** Reads the host's own disks from sysfs, which needs no answer of a disk. */
async function readDisks(root: string): Promise<Inventory["disks"]> {
  const { isOwnDisk } = await import("../storage/disk-sample.ts");
  const own = readHardware(root).devices.filter((device) => isOwnDisk(device) && !device.isPath);
  return Promise.all(
    own.map(async ({ name, model, serial, bytes, bus }) => {
      const turns = await readText(join(root, "sys/class/block", name, "queue/rotational")).catch(() => null);
      const kind = bus === "nvme" ? "NVMe" : turns?.trim() === "1" ? "HD" : "SSD";
      return { name: `/dev/${name}`, model: text(model), serial: text(serial), bytes, kind };
    }),
  );
}
