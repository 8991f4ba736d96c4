import { readdir } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { isMissing, readText } from "./files.ts";

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** Returns the host's boot id, which in a test the folder that stands for the host must also contain. */
export async function readBootId(root: string): Promise<string> {
  const text = await readText(join(root, "proc/sys/kernel/random/boot_id"));
  const bootId = text?.trim() ?? "";
  if (bootId === "") throw new Error("The host has no boot id at /proc/sys/kernel/random/boot_id.");
  return bootId;
}

export async function readHostname(root: string): Promise<string> {
  return (await readText(join(root, "etc/hostname")))?.trim() || "localhost";
}

export async function readMacs(root: string): Promise<string[]> {
  const folder = join(root, "sys/class/net");
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const addresses = await Promise.all(names.map((name) => readText(join(folder, name, "address"))));
  const macs = addresses.flatMap((address) => (address === null ? [] : [address.trim().toLowerCase()]));
  return [...new Set(macs)].filter((mac) => MAC.test(mac) && mac !== "00:00:00:00:00:00").sort();
}

export const uptimeSeconds = (): number => uptime();
