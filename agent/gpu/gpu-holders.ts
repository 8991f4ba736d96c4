import { setTimeout as sleep } from "node:timers/promises";
import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";
import type { DeviceHolder } from "../system/device-holders.ts";
import type { System } from "../system/system.ts";
import { DRM_MAJOR, gpuDevices } from "./gpu-devices.ts";
import { named } from "./gpu-steps.ts";
import { drmDevices } from "./gpu-tools.ts";
import type { ScrubTiming } from "./scrub-timing.ts";

export interface Holders {
  readonly holders: readonly DeviceHolder[];
  readonly unreadable: readonly number[];
}

/** Processes of the systemd units in `except` may keep the GPUs open, for example those of the Fabric Manager's unit. */
export async function gpuHolders(system: System, vendor: GpuVendor, except: readonly string[]): Promise<Holders> {
  const devices = gpuDevices(vendor, (await system.read("/proc/devices")) ?? "");
  const drm = new Set(await drmDevices(system, vendor));
  const isGpu = (device: string): boolean => !device.startsWith(`${DRM_MAJOR}:`) || drm.has(device);
  const walk = system.deviceHolders(new Set(devices.map(({ major }) => major)));
  const holders = walk.holders
    .filter((one) => one.devices.some(isGpu))
    .filter(({ unit }) => unit === null || !except.includes(unit));
  return { holders, unreadable: walk.unreadable };
}

export const describe = (holders: readonly DeviceHolder[]): string =>
  named(
    holders.map(({ pid, name, uid, unit }) => `${name} (pid ${pid}, uid ${uid}${unit === null ? "" : `, ${unit}`})`),
  );

/** The GPU cleaning never ends its own process, its parent process or process 1. */
const isUntouchable = ({ pid }: DeviceHolder): boolean => pid === 1 || pid === process.pid || pid === process.ppid;

/**
 * Ends the processes that hold a GPU: with SIGTERM, and after `holderMs` with SIGKILL. Returns the processes that still hold a GPU after the attempt
 * to end them, even those that opened a GPU only after the call.
 */
export async function endHolders(system: System, timing: ScrubTiming, find: () => Promise<Holders>): Promise<Holders> {
  let found = await find();
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (const holder of found.holders) if (!isUntouchable(holder)) system.signalHolder(holder, signal);
    const deadline = performance.now() + timing.holderMs;
    for (;;) {
      found = await find();
      if (found.holders.length === 0) return found;
      if (performance.now() >= deadline) break;
      await sleep(Math.min(timing.lookEveryMs, timing.holderMs));
    }
  }
  return found;
}
