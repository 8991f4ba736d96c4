import { isOwnDisk } from "../storage/disk-sample.ts";
import { isPort } from "../system/nics.ts";
import type { System } from "../system/system.ts";
import { judgeClock, parseTimedatectl } from "./clock.ts";
import { judgeRoom, type Room } from "./disk-room.ts";
import { type DiskHealth, judgeDisks, parseNvmeLog, parseSmartctl, type SeenDisk } from "./disks.ts";
import { judgeMemory, type MemoryController, type MemoryLook } from "./memory.ts";
import { type BestSpeeds, bestSpeeds, judgeNics, type Nic } from "./nics.ts";
import { PatientTools } from "./patience.ts";
import { type Probe, RHYTHM, TOOL_TIME, type ToolTime } from "./probe.ts";

/** The text of a kernel file, or null if the file cannot be read; many files of sysfs are unreadable while a link or a device is missing. */
const textOf = (system: System, path: string): Promise<string | null> =>
  system.read(path).then(
    (text) => text?.trim() ?? null,
    () => null,
  );

const numberOf = async (system: System, path: string): Promise<number | null> => {
  const text = await textOf(system, path);
  return text === null || !/^\d+$/.test(text) ? null : Number(text);
};

const NET = "/sys/class/net";
const IFF_UP = 1;

async function readNics(system: System): Promise<Nic[]> {
  const found: Nic[] = [];
  for (const name of await system.list(NET)) {
    if (!(await isPort(system.root, name))) continue;
    const flags = Number((await textOf(system, `${NET}/${name}/flags`)) ?? 0);
    found.push({
      name,
      isUp: (flags & IFF_UP) !== 0,
      carrier: (await textOf(system, `${NET}/${name}/carrier`)) === "1",
      speedMbps: await numberOf(system, `${NET}/${name}/speed`),
    });
  }
  return found;
}

export function nicsProbe(): Probe {
  let best: BestSpeeds = {};
  return {
    name: "nics",
    everyMs: RHYTHM.files,
    callsGpuDriver: false,
    look: async ({ system }) => {
      const nics = await readNics(system);
      best = bestSpeeds(best, nics);
      return judgeNics(nics, best);
    },
  };
}

const EDAC = "/sys/devices/system/edac/mc";
/** The names of EDAC's folders of memory modules; older kernels have a folder for each row of memory chips (`csrow`) instead. */
const MODULE = /^(dimm|rank|csrow)\d+$/;

async function readController(system: System, name: string): Promise<MemoryController> {
  const folder = `${EDAC}/${name}`;
  const modules: string[] = [];
  for (const module of (await system.list(folder)).filter((one) => MODULE.test(one))) {
    const at = `${folder}/${module}`;
    const counts = [await numberOf(system, `${at}/dimm_ue_count`), await numberOf(system, `${at}/dimm_ce_count`)];
    const label = (await textOf(system, `${at}/dimm_label`)) || module;
    if (counts.some((count) => (count ?? 0) > 0))
      modules.push(`${label} (${counts[0] ?? 0} uncorrected, ${counts[1] ?? 0} corrected)`);
  }
  return {
    name,
    uncorrected: (await numberOf(system, `${folder}/ue_count`)) ?? 0,
    corrected: (await numberOf(system, `${folder}/ce_count`)) ?? 0,
    modules,
  };
}

export function memoryProbe(): Probe {
  let before: MemoryLook | null = null;
  return {
    name: "memory",
    everyMs: RHYTHM.files,
    callsGpuDriver: false,
    look: async ({ system }) => {
      const controllers: MemoryController[] = [];
      for (const name of (await system.list(EDAC)).filter((one) => /^mc\d+$/.test(one)))
        controllers.push(await readController(system, name));
      const now = { atMs: performance.now(), corrected: controllers.reduce((sum, one) => sum + one.corrected, 0) };
      const findings = judgeMemory(controllers, before, now);
      before = now;
      return findings;
    },
  };
}

/**
 * The types of file systems on the host's own disks. A file system of a server is not checked: it may hang, and the server is responsible for its
 * free space.
 */
const DISK_FILE_SYSTEMS: readonly string[] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "zfs"];
const MOST_ROOMS = 32;

async function readRooms(system: System): Promise<Room[]> {
  const mounts = (await system.mounts().catch(() => [])).filter(
    ({ type, options }) => DISK_FILE_SYSTEMS.includes(type) && !options.includes("ro"),
  );
  const byDevice = new Map(mounts.toReversed().map((mount) => [mount.device, mount.path]));
  const rooms: Room[] = [];
  for (const path of [...byDevice.values()].sort().slice(0, MOST_ROOMS)) {
    const room = await system.room(path).catch(() => null);
    if (room !== null) rooms.push({ path, ...room });
  }
  return rooms;
}

export const roomProbe = (): Probe => ({
  name: "room",
  everyMs: RHYTHM.files,
  callsGpuDriver: false,
  look: async ({ system, wasBad }) => judgeRoom(await readRooms(system), wasBad("health.disk_room")),
});

export const clockProbe = (): Probe => ({
  name: "clock",
  everyMs: RHYTHM.clock,
  callsGpuDriver: false,
  look: async ({ system, skewMs, wasBad }) => {
    const ran = await system.attempt("timedatectl", ["show", "--property=NTPSynchronized"], TOOL_TIME);
    const told = ran.kind === "ended" && ran.exitCode === 0 ? parseTimedatectl(ran.stdout) : { synchronized: null };
    return judgeClock(told.synchronized, skewMs, wasBad("health.clock"));
  },
});

const SMARTCTL = ["--json=c", "--nocheck=standby", "-H", "-A"];

/**
 * Reads a disk's health by smartctl, or by nvme-cli if smartctl does not report it. For a failing disk, smartctl prints the health and also ends with
 * a status other than 0.
 */
async function readDisk(
  system: System,
  tools: PatientTools,
  times: ToolTime,
  { name, isNvme }: { readonly name: string; readonly isNvme: boolean },
): Promise<SeenDisk> {
  const ways: readonly (readonly [readonly [string, ...string[]], (text: string) => DiskHealth | null])[] = [
    [["smartctl", ...SMARTCTL, `/dev/${name}`], parseSmartctl],
    ...(isNvme ? [[["nvme", "smart-log", `/dev/${name}`, "-o", "json"], parseNvmeLog] as const] : []),
  ];
  const silent: string[] = [];
  const broken: string[] = [];
  for (const [command, parse] of ways) {
    const [tool] = command;
    const ran = await tools.attempt(system, name, command, times);
    if (ran.kind === "missing") silent.push(ran.message);
    // If one tool hangs on a disk, another tool would hang on the disk too.
    else if (ran.kind === "hung") return { name, health: null, isSilent: false, why: "it did not answer in time" };
    else {
      try {
        const health = parse(ran.stdout);
        if (health !== null) return { name, health };
        silent.push(`${tool} does not say whether it is healthy`);
      } catch {
        broken.push(`${tool} ended with status ${ran.exitCode}, and its output is not readable`);
      }
    }
  }
  return { name, health: null, isSilent: broken.length === 0, why: [...broken, ...silent].join(", ") };
}

const MOST_DISKS = 64;

export function disksProbe(times: ToolTime = TOOL_TIME): Probe {
  const tools = new PatientTools();
  return {
    name: "disks",
    everyMs: RHYTHM.disks,
    callsGpuDriver: false,
    look: async ({ system }) => {
      const seen: SeenDisk[] = [];
      for (const { name, bus } of ownDisks(system))
        seen.push(await readDisk(system, tools, times, { name, isNvme: bus === "nvme" }));
      return judgeDisks(seen);
    },
  };
}

function ownDisks(system: System) {
  try {
    return system
      .disks()
      .devices.filter((device) => isOwnDisk(device) && !device.isPath)
      .slice(0, MOST_DISKS);
  } catch {
    // If the host's block devices cannot be listed, no disk is checked.
    return [];
  }
}
