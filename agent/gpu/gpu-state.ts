/** What both vendors' tools say about one GPU, as far as the cleaning needs it. A value of null is a value that the tool did not tell. */
export interface GpuState {
  /** The PCI address in Linux's form, for example `0000:3b:00.0`. */
  readonly pci: string;
  readonly uuid: string | null;
  readonly serial: string | null;
  readonly vbios: string | null;
  readonly driver: string | null;
  readonly memoryTotalMib: number | null;
  readonly memoryUsedMib: number | null;
  /** The processes that use the GPU, or null if the tool did not tell. */
  readonly processes: readonly GpuProcess[] | null;
  /** Settings that a tenant may change. They must have the same values after the cleaning. */
  readonly settings: Readonly<Record<string, string | null>>;
  /** Why the vendor's tool does not call the GPU healthy. An unknown value is also a reason. The list of a healthy GPU is empty. */
  readonly faults: readonly string[];
  /** What the vendor's tool recommends. A GPU of which nothing is known has the recommendation `unknown`. */
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

/** Brings a PCI address of a vendor's tool (`00000000:3B:00.0`, `0000:3b:00.0`, `3b:00.0`) into Linux's form. Returns null for other text. */
export function pciAddress(text: string): string | null {
  const parts = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})[.]([0-7])$/i.exec(text.trim());
  if (parts === null) return null;
  const [, domain = "0", bus, device, fn] = parts;
  return `${Number.parseInt(domain, 16).toString(16).padStart(4, "0")}:${bus}:${device}.${fn}`.toLowerCase();
}
