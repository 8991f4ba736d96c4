import { readdir } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Inventory } from "../../shared/inventory.ts";
import { isPresent, readText } from "./files.ts";

const NET = "sys/class/net";
const MOST_ADDRESSES = 16;

/** The files of an interface without a link cannot be read, and some interfaces do not have all files. */
const textOf = (path: string): Promise<string | null> =>
  readText(path).then(
    (text) => text?.trim() ?? null,
    () => null,
  );

/**
 * True for a network port of a card in the host. A bond, a VLAN or a bridge has no link `device` in sysfs, and a virtual function is a part of its
 * card's port.
 */
export async function isPort(root: string, name: string): Promise<boolean> {
  const device = join(root, NET, name, "device");
  // The folder /sys/class/net also contains files, such as `bonding_masters`, which are no interfaces.
  return (await isPresent(device).catch(() => false)) && !(await isPresent(join(device, "physfn")));
}

/** True for a bond and for a VLAN, which may have the addresses of ports. A container's interface is neither a bond nor a VLAN. */
export async function isBondOrVlan(root: string, name: string): Promise<boolean> {
  const places = [join(root, NET, name, "bonding"), join(root, "proc/net/vlan", name)];
  return (await Promise.all(places.map((place) => isPresent(place).catch(() => false)))).includes(true);
}

/**
 * Returns a function that names the IPv4 addresses of an interface. For a test's folder that stands for a host, the function returns no addresses,
 * because Node.js tells only those of the machine on which the agent runs.
 */
export function ipv4Addresses(root: string): (name: string) => string[] {
  const addresses = root === "/" ? networkInterfaces() : {};
  return (name) => (addresses[name] ?? []).flatMap((one) => (one.family === "IPv4" ? [one.address] : []));
}

/**
 * Returns the host's network ports, whether or not they are up or have an address, and then its virtual interfaces that have an address. In the
 * inventory, only ports have a speed, so that the hub does not count a bond or a VLAN in place of a lost port. Throws if Linux does not list the
 * host's network interfaces.
 */
export async function readInterfaces(root: string): Promise<Inventory["interfaces"]> {
  const addressesOf = ipv4Addresses(root);
  const ports: Inventory["interfaces"] = [];
  const others: Inventory["interfaces"] = [];
  for (const name of (await readdir(join(root, NET))).sort()) {
    const text = (file: string): Promise<string | null> => textOf(join(root, NET, name, file));
    const ipv4 = addressesOf(name);
    // A network port in a bond shows the bond's MAC address as its own.
    const mac = (await text("bonding_slave/perm_hwaddr")) ?? (await text("address"));
    const one = { name, mac: (mac ?? "").slice(0, 200).toLowerCase(), ipv4: ipv4.slice(0, MOST_ADDRESSES) };
    const speed = Number((await text("speed")) ?? 0);
    if (await isPort(root, name)) ports.push({ ...one, speed_mbps: speed > 0 ? speed : null });
    else if (ipv4.length > 0) others.push({ ...one, speed_mbps: null });
  }
  return [...ports, ...others];
}
