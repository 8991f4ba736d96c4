/**
 * The facts about one GPU that the GPU cleaning needs, as the tool of NVIDIA or AMD tells them. A member of `GpuState` is null if the vendor's tool
 * did not tell the fact.
 */
export interface GpuState {
  /** The PCI address in Linux's form, for example `0000:3b:00.0`. */
  readonly pci: string;
  readonly uuid: string | null;
  readonly serial: string | null;
  readonly vbios: string | null;
  readonly driver: string | null;
  readonly memoryTotalMib: number | null;
  readonly memoryUsedMib: number | null;
  /** The processes that use the GPU, or null if the vendor's tool did not tell them. */
  readonly processes: readonly GpuProcess[] | null;
  /** The settings of the GPU that a tenant may change. The GPU cleaning checks the GPU's settings at its end. */
  readonly settings: Readonly<Record<string, string | null>>;
  /**
   * The reasons why the GPU does not count as healthy, from the output of the vendor's tool. A value that the vendor's tool does not tell is also a
   * fault. For a healthy GPU, `faults` is empty.
   */
  readonly faults: readonly string[];
  /** The action that the vendor's tool recommends for the GPU. The action is `unknown` if the vendor's tool tells no known recommendation. */
  readonly recommends: GpuAction;
  /** The name of the group of GPUs that can only be reset together, or null for a GPU that can be reset alone. */
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
 * Converts a PCI address from a vendor's tool (`00000000:3B:00.0`, `0000:3b:00.0`, `3b:00.0`) into Linux's form. Returns null for a text that is no
 * PCI address.
 */
export function pciAddress(text: string): string | null {
  const parts = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})[.]([0-7])$/i.exec(text.trim());
  if (parts === null) return null;
  const [, domain = "0", bus, device, fn] = parts;
  return `${Number.parseInt(domain, 16).toString(16).padStart(4, "0")}:${bus}:${device}.${fn}`.toLowerCase();
}
