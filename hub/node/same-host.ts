import type { Inventory } from "../../shared/inventory.ts";
import { isOfOneMachine } from "../../shared/mac-address.ts";
import type { MachineDetails } from "../../shared/machine-details.ts";

type Proof = Pick<MachineDetails, "macs" | "hardware_uuid">;
type Seen = {
  readonly system: Pick<Inventory["system"], "uuid">;
  readonly interfaces: readonly { readonly mac: string }[];
};

/** The MAC addresses of a machine, in lower case, that no other machine can have. Other MAC addresses prove nothing (decision N8). */
export const provingMacs = (macs: readonly string[]): string[] =>
  [...new Set(macs.map((mac) => mac.toLowerCase()))].filter(isOfOneMachine);

/**
 * Returns why the host of an agent is not the host of a machine in MAAS; null if it is the same host (decision N8). The agent's host must have one of
 * the MAC addresses that MAAS knows of the machine. If both MAAS and the agent know a hardware UUID, the two must be equal.
 */
export function otherHostBecause(host: Seen, machine: Proof): string | null {
  const has = new Set(provingMacs(host.interfaces.map(({ mac }) => mac)));
  const known = provingMacs(machine.macs);
  if (!known.some((mac) => has.has(mac)))
    return `the host has none of the machine's MAC addresses (${known.slice(0, 4).join(", ") || "MAAS knows none that only one machine can have"})`;
  const [uuid, expected] = [host.system.uuid.toLowerCase(), machine.hardware_uuid?.toLowerCase() ?? ""];
  if (uuid !== "" && expected !== "" && uuid !== expected)
    return `the host has the hardware UUID ${uuid}, and the machine has ${expected}`;
  return null;
}

const VENDORS = { nvidia: /nvidia/i, amd: /\bamd\b|advanced micro devices/i, none: null } as const;

/**
 * Compares the GPUs in an inventory with the SKU of the node. An agent's inventory lists only devices with the class of a display controller, so an
 * inventory without a GPU of the SKU's vendor says nothing.
 */
export function compareGpus(
  gpus: readonly { readonly vendor: string }[],
  sku: { readonly gpuVendor: keyof typeof VENDORS; readonly gpusTotal: number },
): { readonly status: "True" | "False" | "Unknown"; readonly reason: string; readonly message: string } {
  const count = (vendor: "nvidia" | "amd"): number => gpus.filter((gpu) => VENDORS[vendor].test(gpu.vendor)).length;
  const found = `${count("nvidia")} GPUs of NVIDIA and ${count("amd")} of AMD`;
  const wanted = sku.gpuVendor === "none" ? "no GPUs" : `${sku.gpusTotal} GPUs of ${sku.gpuVendor}`;
  const own = sku.gpuVendor === "none" ? count("nvidia") : count(sku.gpuVendor);
  const total = count("nvidia") + count("amd");
  if (sku.gpuVendor !== "none" && sku.gpusTotal > 0 && total === 0)
    return {
      status: "Unknown",
      reason: "NotListed",
      message: `The agent's inventory lists no GPUs, and the SKU has ${wanted}. The next reimage counts the GPUs.`,
    };
  if (own === total && own === (sku.gpuVendor === "none" ? 0 : sku.gpusTotal))
    return { status: "True", reason: "AsInSku", message: `The host has ${wanted}, as the SKU says.` };
  return {
    status: "False",
    reason: "OtherGpus",
    message: `The host has ${found}, and the SKU has ${wanted}. Remove the node and adopt the machine with the right SKU, or repair the host.`,
  };
}
