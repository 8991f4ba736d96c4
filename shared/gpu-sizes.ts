import type { Inventory } from "./inventory.ts";

/**
 * What the inventories of a host said about the memory of one GPU, in bytes. `window` is the largest reported size of the GPU's memory that is a
 * power of two, and `exact` the largest reported size that is none. Without a GPU driver, the inventory has the size of the PCI window by which the
 * processor reaches the GPU's memory, and such a window is a power of two.
 */
export interface GpuSizes {
  readonly exact?: number;
  readonly window?: number;
}
/** The sizes of a host's GPUs by the GPU's PCI address. */
export type HostGpuSizes = Readonly<Record<string, GpuSizes>>;

const MOST_KEPT = 64;

/** Returns a PCI address in one form, whichever tool wrote it, or null if the text is no PCI address. */
function addressOf(text: string): string | null {
  const [, domain = "0", rest] =
    /^(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}:[0-9a-f]{2}[.][0-7])$/.exec(text.toLowerCase()) ?? [];
  return rest === undefined ? null : `${Number.parseInt(domain, 16).toString(16).padStart(4, "0")}:${rest}`;
}

/**
 * Adds the GPU sizes in an inventory to the known GPU sizes of the host. The known size of a GPU never becomes smaller, so that a host cannot make
 * the hub forget a part of the memory by a smaller report.
 */
export function withSizes(known: HostGpuSizes, gpus: Inventory["gpus"]): HostGpuSizes {
  const sizes = new Map(Object.entries(known));
  for (const { bus, memory_bytes: bytes } of gpus) {
    const address = addressOf(bus);
    if (address === null || bytes === null || !Number.isSafeInteger(bytes) || bytes <= 0) continue;
    if (!sizes.has(address) && sizes.size >= MOST_KEPT) continue;
    const kind = Number.isInteger(Math.log2(bytes)) ? "window" : "exact";
    const own = sizes.get(address) ?? {};
    sizes.set(address, { ...own, [kind]: Math.max(own[kind] ?? 0, bytes) });
  }
  return Object.fromEntries(sizes);
}

/**
 * Returns how much memory the GPU at the address has according to the inventory, or null if nobody knows. If the only known size of the GPU's memory
 * is a power of two, the function returns it only if the host states the same size now, because it may be the size of a PCI window.
 */
export function knownGpuBytes(known: HostGpuSizes, address: string, stated: number): number | null {
  const of = addressOf(address);
  const { exact, window } = (of !== null && Object.hasOwn(known, of) ? known[of] : undefined) ?? {};
  return exact ?? (window !== undefined && window === stated ? window : null);
}
