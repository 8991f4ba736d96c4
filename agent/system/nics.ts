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

/** True for a port of a card in the host. A bond, a VLAN or a bridge has no device, and a virtual function is a part of its card's port. */
export async function isPort(root: string, name: string): Promise<boolean> {
  const device = join(root, NET, name, "device");
  // The folder also has files, such as `bonding_masters`, below which nothing can be.
  return (await isPresent(device).catch(() => false)) && !(await isPresent(join(device, "physfn")));
}

/** True for a bond and for a VLAN, which may have the addresses of ports. A container's interface is neither. */
export async function isBondOrVlan(root: string, name: string): Promise<boolean> {
  const places = [join(root, NET, name, "bonding"), join(root, "proc/net/vlan", name)];
  return (await Promise.all(places.map((place) => isPresent(place).catch(() => false)))).includes(true);
}

/**
 * Returns a function that names the IPv4 addresses of an interface. They are those of the machine on which the agent runs, and not those of a folder that
 * stands for a host.
 */
export function ipv4Addresses(root: string): (name: string) => string[] {
  const addresses = root === "/" ? networkInterfaces() : {};
  return (name) => (addresses[name] ?? []).flatMap((one) => (one.family === "IPv4" ? [one.address] : []));
}

/**
 * The host's ports, whether or not they are up or have an address, and then its virtual interfaces with an address. Only ports have a speed, so that a bond
 * or a VLAN never stands in for a lost port. Throws if the host does not show its interfaces.
 */
export async function readInterfaces(root: string): Promise<Inventory["interfaces"]> {
  const addressesOf = ipv4Addresses(root);
  const ports: Inventory["interfaces"] = [];
  const others: Inventory["interfaces"] = [];
  for (const name of (await readdir(join(root, NET))).sort()) {
    const text = (file: string): Promise<string | null> => textOf(join(root, NET, name, file));
    const ipv4 = addressesOf(name);
    // A port of a bond shows the address of the bond as its own.
    const mac = (await text("bonding_slave/perm_hwaddr")) ?? (await text("address"));
    const one = { name, mac: (mac ?? "").slice(0, 200).toLowerCase(), ipv4: ipv4.slice(0, MOST_ADDRESSES) };
    const speed = Number((await text("speed")) ?? 0);
    if (await isPort(root, name)) ports.push({ ...one, speed_mbps: speed > 0 ? speed : null });
    else if (ipv4.length > 0) others.push({ ...one, speed_mbps: null });
  }
  return [...ports, ...others];
}
