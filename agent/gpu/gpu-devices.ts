import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/** The device numbers with one major number, which belong to a driver of a vendor's GPUs. */
export interface DeviceRange {
  readonly major: number;
  readonly driver: string;
}

/**
 * The major number that NVIDIA's driver always requests from the kernel for its first character devices, and that /proc/devices lists as `nvidia`.
 */
const NVIDIA_MAJOR = 195;
/** The major number of the DRM devices (`/dev/dri/card*`, `/dev/dri/renderD*`) of every vendor. */
export const DRM_MAJOR = 226;
const NVIDIA_DRIVER = /^nvidia/;

/**
 * Finds the device numbers of a vendor's GPUs in the text of `/proc/devices`. The agent finds a GPU device by number, not by path, because a process
 * with root rights can make a device file of any name. Only NVIDIA_MAJOR and DRM_MAJOR are fixed numbers: the kernel chooses the other drivers'
 * numbers at each boot.
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
