import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/** All device numbers with one major number, which belong to one GPU driver. */
export interface DeviceRange {
  readonly major: number;
  readonly driver: string;
}

/** The fixed major number of NVIDIA's first character devices, which /proc/devices lists as `nvidia`. */
const NVIDIA_MAJOR = 195;
/** The major number of the DRM devices (`/dev/dri/card*`, `/dev/dri/renderD*`) of every vendor. */
export const DRM_MAJOR = 226;
const NVIDIA_DRIVER = /^nvidia/;

/**
 * Finds the device numbers of a vendor's GPUs in the text of /proc/devices. The agent finds GPU devices by their device numbers, because a process
 * with root rights can make a device file of any name. Except for NVIDIA_MAJOR and DRM_MAJOR, the kernel chooses the major numbers of GPU drivers
 * anew at each boot.
 */
export function gpuDevices(vendor: GpuVendor, procDevices: string): readonly DeviceRange[] {
  const characters = procDevices.split(/^Block devices:/m, 1)[0] ?? "";
  const listed = [...characters.matchAll(/^ *(\d+) (\S+)$/gm)].map(([, major, driver = ""]) => ({
    major: Number(major),
    driver,
  }));
  const isOurs = vendor === "nvidia" ? (name: string) => NVIDIA_DRIVER.test(name) : (name: string) => name === "kfd";
  const fixed = vendor === "nvidia" ? [{ major: NVIDIA_MAJOR, driver: "nvidia" }] : [];
  const found = [...fixed, { major: DRM_MAJOR, driver: "drm" }, ...listed.filter(({ driver }) => isOurs(driver))];
  return [...new Map(found.map((one) => [one.major, one])).values()].sort((a, b) => a.major - b.major);
}
