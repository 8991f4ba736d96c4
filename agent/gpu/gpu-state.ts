export interface GpuState {
  readonly pci: string;
  readonly uuid: string | null;
  readonly serial: string | null;
  readonly vbios: string | null;
  readonly driver: string | null;
  readonly memoryTotalMib: number | null;
  readonly memoryUsedMib: number | null;
  readonly processes: readonly GpuProcess[] | null;
  /** The GPU's settings that a tenant may change, which the GPU cleaning checks at its end. */
  readonly settings: Readonly<Record<string, string | null>>;
  /**
   * Why the GPU does not count as healthy, by the output of the vendor's tool. A value that the vendor's tool does not report counts as a fault of
   * the GPU.
   */
  readonly faults: readonly string[];
  /** The action that the vendor's tool recommends for the GPU, or `unknown` without a known recommendation. */
  readonly recommends: GpuAction;
  /** The group of GPUs that can only be reset together, or null for a GPU that can be reset alone. */
  readonly group: string | null;
  readonly fabric: FabricState;
}

export interface GpuProcess {
  readonly pid: number;
  readonly name: string;
}

export type GpuAction = "none" | "reset" | "reboot" | "power_cycle" | "unknown";
export type FabricState = "absent" | "ready" | "starting" | "failed";

export interface GpuReport {
  readonly gpus: readonly GpuState[];
}

/**
 * Converts a PCI address of a vendor's tool (`00000000:3B:00.0`, `3b:00.0`) into Linux's form, for example `0000:3b:00.0`. `pciAddress` returns null
 * for a text that is no PCI address.
 */
export function pciAddress(text: string): string | null {
  const parts = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})[.]([0-7])$/i.exec(text.trim());
  if (parts === null) return null;
  const [, domain = "0", bus, device, fn] = parts;
  return `${Number.parseInt(domain, 16).toString(16).padStart(4, "0")}:${bus}:${device}.${fn}`.toLowerCase();
}
