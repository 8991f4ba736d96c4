import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { isGone } from "../proc-files.ts";
import { foreignMountOf, ownMounts } from "./foreign-mounts.ts";
import { LONG_TARGET, openFilesOf, pidsOf } from "./processes.ts";
import { linesOf, namesIn, presences, type Reading, readText, settled, textOf, Unreadable, valued } from "./reading.ts";

const NVIDIA_SMI_TIMEOUT_MS = 60_000;
/** The names of NVIDIA GPU settings that outlive a process. Counters, temperatures and present clocks of a GPU are no settings. */
const SETTINGS = [
  ...[
    "persistence_mode",
    "current_mig",
    "pending_mig",
    "accounting_mode",
    "compute_mode",
    "current_ecc",
    "pending_ecc",
  ],
  ...["requested_power_limit", "vbios_version", "img_version", "gsp_firmware_version", "addressing_mode"],
];

/** A host without a GPU driver has no GPU settings. */
export async function readGpuState(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  const options = await readText(join(reading.root, "proc/driver/nvidia/params"));
  for (const line of linesOf(options)) {
    const [name, value] = line.split(/:\s*/, 2);
    entries.push(valued(reading, `option ${name} of the driver`, value ?? ""));
  }
  for (const device of await namesIn(reading, "/proc/driver/nvidia/gpus")) {
    const text = await textOf(reading, `/proc/driver/nvidia/gpus/${device}/registry`);
    entries.push(valued(reading, `registry of GPU ${device}`, text));
  }
  if (options !== null) entries.push(...(await readNvidiaSettings(reading)));
  for (const card of await namesIn(reading, "/sys/class/drm"))
    for (const file of ["current_compute_partition", "current_memory_partition", "power_dpm_force_performance_level"]) {
      const text = await textOf(reading, `/sys/class/drm/${card}/device/${file}`);
      if (text !== "" && /^card\d+$/.test(card)) entries.push(valued(reading, `${file} of ${card}`, text));
    }
  return entries;
}

async function readNvidiaSettings(reading: Reading): Promise<ResidueEntry[]> {
  const { exitCode, stdout, stderr } = await reading.run("nvidia-smi", ["-q", "-x"], NVIDIA_SMI_TIMEOUT_MS);
  if (exitCode !== 0)
    throw new Unreadable(`nvidia-smi ended with status ${exitCode}: ${(stderr || stdout).slice(0, 200)}`);
  return stdout
    .split(/<gpu id="/)
    .slice(1)
    .flatMap((gpu) => {
      const uuid = /<uuid>([^<]*)<\/uuid>/.exec(gpu)?.[1] ?? gpu.slice(0, gpu.indexOf('"'));
      return SETTINGS.flatMap((setting) => {
        const value = new RegExp(`<${setting}>([^<]*)</${setting}>`).exec(gpu)?.[1];
        return value === undefined ? [] : [valued(reading, `${setting} of ${uuid}`, value.trim())];
      });
    });
}

/** The fixed major number of NVIDIA's devices; /proc/devices lists the major numbers of other GPU drivers. */
const NVIDIA_MAJOR = 195;
const GPU_DRIVERS = /^(nvidia.*|kfd|drm)$/;

/** Reads which processes hold a device of a GPU. A GPU device is known by its number, because a program can open it by a device file at any path. */
export async function readGpuHolders(reading: Reading): Promise<ResidueEntry[]> {
  const majors = new Set([NVIDIA_MAJOR]);
  for (const line of linesOf(await readText(join(reading.root, "proc/devices")))) {
    const [major, driver] = line.split(/\s+/);
    if (major !== undefined && driver !== undefined && GPU_DRIVERS.test(driver)) majors.add(Number(major));
  }
  return settled(reading, async () => {
    const names: string[] = [];
    const mounts = await ownMounts(reading);
    for (const pid of await pidsOf(reading)) {
      reading.signal.throwIfAborted();
      for (const { descriptor, target } of await openFilesOf(reading, pid, "path_and_mount")) {
        // The file system of a file with a path of more than 4,095 bytes is unknown, so a `stat` of this file may hang.
        if (target === LONG_TARGET) throw new Unreadable(`Process ${pid} has ${target.slice(1)} open.`);
        if (!target.startsWith("/") || foreignMountOf(mounts, target) !== null) continue;
        if (!(await isDeviceOf(majors, descriptor))) continue;
        names.push(`${await textOf(reading, `/proc/${pid}/comm`)} holds ${target}`);
      }
    }
    return presences(reading, names);
  });
}

/** Whether an open descriptor points to a GPU device. The caller of `isDeviceOf` leaves out files on network file systems, where `stat` may hang. */
async function isDeviceOf(majors: ReadonlySet<number>, descriptor: string): Promise<boolean> {
  try {
    const { rdev } = await stat(descriptor);
    return majors.has(Math.floor(rdev / 256) & 0xfff);
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}
