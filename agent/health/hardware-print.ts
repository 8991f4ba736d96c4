import { ipv4Addresses, isBondOrVlan, isPort } from "../system/nics.ts";
import type { System } from "../system/system.ts";

const DISK = /^(nvme\d+n\d+|sd[a-z]+)$/;

const textOf = (system: System, path: string): Promise<string> =>
  system.read(path).then(
    (text) => text?.trim() ?? "",
    // A network interface without a link has no readable speed.
    () => "",
  );

/**
 * A short text that changes when the host gains or loses a GPU, memory, a disk, a link or an address of a link. The agent compares `hardwarePrint`
 * every few minutes to notice changed hardware, because reading the whole inventory costs much more.
 */
export async function hardwarePrint(system: System, addressesOf = ipv4Addresses(system.root)): Promise<string> {
  const gpus = (await system.pciGpus())?.map(({ address }) => address) ?? null;
  const memory = /^MemTotal:.*$/m.exec(await textOf(system, "/proc/meminfo"))?.[0] ?? "";
  const disks = (await system.list("/sys/block")).filter((name) => DISK.test(name));
  const links: string[] = [];
  for (const name of await system.list("/sys/class/net")) {
    if (!(await isPort(system.root, name)) && !(await isBondOrVlan(system.root, name))) continue;
    const speed = await textOf(system, `/sys/class/net/${name}/speed`);
    links.push([name, speed, ...addressesOf(name).toSorted()].join(" "));
  }
  return JSON.stringify({ gpus, memory, disks, links });
}
