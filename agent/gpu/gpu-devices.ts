import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/** A range of minor numbers of one major number, which belongs to the GPUs of a vendor. */
export interface DeviceRange {
  readonly major: number;
  readonly driver: string;
}

/** NVIDIA's first character devices always have this number. The driver asks the kernel for it by number, and lists it as `nvidia`. */
const NVIDIA_MAJOR = 195;
/** The major number of the DRM devices (`/dev/dri/card*`, `/dev/dri/renderD*`) of every vendor. */
export const DRM_MAJOR = 226;
const NVIDIA_DRIVER = /^nvidia/;

/**
 * Finds the device numbers of a vendor's GPUs in the text of `/proc/devices`. A device is found by its number and not by its path, because a process
 * with root can make a device file of any name. The numbers of all drivers but two differ from boot to boot.
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
