import { z } from "zod";
import { STATE_DIR } from "../config.ts";
import type { System } from "../system/system.ts";
import { isSamePlace, type KernelFault } from "./kernel-faults.ts";

const RESETS_FILE = `${STATE_DIR}/gpu-resets.json`;
const Resets = z.strictObject({
  boot_id: z.string().max(64),
  resets: z.array(z.strictObject({ pci: z.string().max(64), at_us: z.number() })).max(64),
});

/** A GPU that a cleaning has reset and found healthy, and the monotonic time since which the kernel's log has no fault of the GPU. */
export interface GpuReset {
  readonly pci: string;
  readonly atUs: number;
}

/**
 * Returns the GPU resets since the host's boot. After a reset of a GPU, its earlier faults no longer count. If the file of GPU resets is unreadable,
 * no GPU counts as reset, and all GPU faults are kept.
 */
export async function readResets(system: System): Promise<readonly GpuReset[]> {
  try {
    const { boot_id, resets } = Resets.parse(JSON.parse((await system.read(RESETS_FILE)) ?? "null"));
    return boot_id === (await system.bootId()) ? resets.map(({ pci, at_us }) => ({ pci, atUs: at_us })) : [];
  } catch {
    return [];
  }
}

/** Records that GPUs were reset and are healthy, so that older faults of these GPUs in the kernel's log no longer count. */
export async function noteResets(system: System, pcis: readonly string[], atUs: number): Promise<void> {
  const others = (await readResets(system)).filter(({ pci }) => !pcis.includes(pci));
  const resets = [...pcis.map((pci) => ({ pci, atUs })), ...others].slice(0, 64);
  const file = { boot_id: await system.bootId(), resets: resets.map(({ pci, atUs: at }) => ({ pci, at_us: at })) };
  await system.write(RESETS_FILE, `${JSON.stringify(file)}\n`, 0o600);
}

/** True if the fault's GPU was reset after the fault. A fault that names no GPU may belong to any GPU, so it counts even after a reset of GPUs. */
export const wasResetSince = (resets: readonly GpuReset[], { pci }: KernelFault, faultAtUs: number | null): boolean =>
  pci !== null && faultAtUs !== null && resets.some((one) => isSamePlace(one.pci, pci) && one.atUs > faultAtUs);
