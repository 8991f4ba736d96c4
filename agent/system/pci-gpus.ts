import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isMissing, readText } from "./files.ts";

export interface PciGpu {
  readonly vendor: "nvidia" | "amd";
  readonly address: string;
}

const DEVICES = "sys/bus/pci/devices";
const VENDORS: Readonly<Record<string, PciGpu["vendor"]>> = { "0x10de": "nvidia", "0x1002": "amd" };
/**
 * The PCI classes of GPUs: display controllers (VGA, 3D and other) and processing accelerators. A VGA controller of AMD is the screen of a BMC or a part of
 * the processor; AMD's GPUs for computing have the other classes.
 */
const GPU_CLASS = { nvidia: /^0x(0300|0302|0380|1200)/, amd: /^0x(0302|0380|1200)/ } as const;

/** Returns the GPUs that the kernel sees on the PCI bus, whether or not a GPU driver works; null if the host shows no PCI bus. */
export async function readPciGpus(root: string): Promise<PciGpu[] | null> {
  const folder = join(root, DEVICES);
  const addresses = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (addresses === null) return null;
  const found: PciGpu[] = [];
  for (const address of addresses.sort()) {
    const text = async (file: string): Promise<string> => (await readText(join(folder, address, file)))?.trim() ?? "";
    const vendor = VENDORS[await text("vendor")];
    if (vendor !== undefined && GPU_CLASS[vendor].test(await text("class"))) found.push({ vendor, address });
  }
  return found;
}
