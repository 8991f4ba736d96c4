import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { descriptorsOf } from "./descriptor-tables.ts";
import { isNetworkMount, parseMounts } from "./mounts.ts";
import { codeOf, isGone, mountIdOf } from "./proc-files.ts";
import { parseStat } from "./proc-stat.ts";

export interface DeviceHolder {
  readonly pid: number;
  /**
   * When the process that holds a device started, in clock ticks since boot. The Linux kernel may give a pid to a later process, but never with the
   * same start time.
   */
  readonly startTicks: string;
  readonly uid: number;
  readonly name: string;
  /** The systemd unit of the process that holds a device, or null for a process outside all units. */
  readonly unit: string | null;
  readonly devices: readonly string[];
}

export interface HolderWalk {
  readonly holders: readonly DeviceHolder[];
  /** The pids of processes whose open files are unreadable, so that a process may hold a device unseen. */
  readonly unreadable: readonly number[];
}

/**
 * True for the error of a user's FUSE file system that root may not read, or of a FUSE file system without its server. A user's FUSE file system is
 * mounted with `nodev`, so no process can open a device through it.
 */
const isForeignFuse = (error: unknown): boolean => ["EACCES", "ENOTCONN"].includes(String(codeOf(error)));

/** The major number in a device number of glibc's encoding (makedev). */
const majorOf = (rdev: number): number => {
  const low = rdev & 0xffffffff;
  return ((low >>> 8) & 0xfff) | (Math.floor(rdev / 2 ** 32) & 0xfffff000);
};
const minorOf = (rdev: number): number => ((rdev & 0xff) | ((rdev >>> 12) & 0xffffff00)) >>> 0;

export const deviceNumber = ({ rdev }: Pick<Stats, "rdev">): string => `${majorOf(rdev)}:${minorOf(rdev)}`;

/**
 * Finds the processes that have a character device of the given major numbers open or mapped. The search for the processes that hold a device
 * compares device numbers, so it also finds a device under another name. The search for the processes that hold a device leaves out a process that
 * ends during the search.
 */
export const walkDeviceHolders = (root: string, majors: ReadonlySet<number>): HolderWalk =>
  walkHolders(root, (stat) => stat.isCharacterDevice() && majors.has(majorOf(stat.rdev)));

/** Finds the processes that have a given block or character device (`major:minor`) open or mapped. */
export const walkDiskHolders = (
  root: string,
  { blocks, characters }: { blocks: ReadonlySet<string>; characters: ReadonlySet<string> },
): HolderWalk =>
  walkHolders(
    root,
    (stat) =>
      (stat.isBlockDevice() && blocks.has(deviceNumber(stat))) ||
      (stat.isCharacterDevice() && characters.has(deviceNumber(stat))),
  );

function walkHolders(root: string, isWanted: (stat: Stats) => boolean): HolderWalk {
  const proc = join(root, "proc");
  const holders: DeviceHolder[] = [];
  const unreadable: number[] = [];
  for (const name of readdirSync(proc).filter((one) => /^\d+$/.test(one))) {
    try {
      const devices = devicesOf(join(proc, name), isWanted);
      if (devices.length > 0) holders.push({ ...factsOf(join(proc, name)), pid: Number(name), devices });
    } catch (error) {
      if (!isGone(error)) unreadable.push(Number(name));
    }
  }
  return { holders, unreadable };
}

function devicesOf(process: string, isWanted: (stat: Stats) => boolean): string[] {
  const found = new Set<string>();
  const look = (path: string): void => {
    try {
      const stat = statSync(path);
      if (isWanted(stat)) found.add(deviceNumber(stat));
    } catch (error) {
      if (!isGone(error) && !isForeignFuse(error)) throw error;
    }
  };
  const hanging = networkMounts(process);
  for (const descriptor of descriptorsOf(process, "path_and_mount")) {
    const path = join(process, descriptor);
    // The link target of a socket, pipe or anonymous inode is no path, so the descriptor cannot be a device.
    if (isPath(path) && !hanging.ids.has(mountIdOf(path))) look(path);
  }
  const maps = readFileSync(join(process, "maps"), "utf8");
  for (const range of mappedFiles(maps, hanging.devices)) look(join(process, "map_files", range));
  return [...found].sort();
}

/** False for a descriptor that is gone. The kernel shows no path of more than 4,095 bytes, so a tenant may hide a device behind such a path. */
function isPath(descriptor: string): boolean {
  try {
    return readlinkSync(descriptor).startsWith("/");
  } catch (error) {
    if (codeOf(error) === "ENAMETOOLONG") return true;
    if (isGone(error)) return false;
    throw error;
  }
}

/** Returns the text of a file in /proc about a process, or an empty text if the file is missing. */
function textIfThere(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    // An ended process (zombie) has no mounts, so the kernel refuses to read the list of its mounts.
    if (isGone(error) || codeOf(error) === "EINVAL") return "";
    throw error;
  }
}

/**
 * The mounts of network file systems that a process sees. The agent does not call `stat` on files of network file systems, because the call waits as
 * long as the server is gone. The agent calls `stat` on a file whose mount it does not know, because the file may be a device.
 */
function networkMounts(process: string): { ids: ReadonlySet<string>; devices: ReadonlySet<string> } {
  const found = parseMounts(textIfThere(join(process, "mountinfo"))).filter(isNetworkMount);
  return { ids: new Set(found.map(({ id }) => id)), devices: new Set(found.map(({ device }) => device)) };
}

/**
 * Returns one address range for each mapped file in the text of `/proc/<pid>/maps`, but none for files on the file systems that `left` names. A
 * process maps a library at several addresses, and any of these address ranges gives the library's device number.
 */
function mappedFiles(maps: string, left: ReadonlySet<string>): string[] {
  const byFile = new Map<string, string>();
  for (const line of maps.split("\n")) {
    const parts = /^([0-9a-f]+-[0-9a-f]+) \S+ \S+ (\S+ \d+) +\//.exec(line);
    const [, range, file] = parts ?? [];
    if (range === undefined || file === undefined || byFile.has(file) || left.has(fileSystemOf(file))) continue;
    byFile.set(file, range);
  }
  return [...byFile.values()].map((range) => range.replace(/\b0+(?=[0-9a-f])/g, ""));
}

/** Returns the device number of a file system, which is hexadecimal in /proc/PID/maps (`00:2d 17`) and decimal in /proc/PID/mountinfo (`0:45`). */
const fileSystemOf = (file: string): string =>
  (file.split(" ")[0] ?? "")
    .split(":")
    .map((part) => Number.parseInt(part, 16))
    .join(":");

function factsOf(process: string): Omit<DeviceHolder, "pid" | "devices"> {
  const { startTicks, comm } = parseStat(readFileSync(join(process, "stat"), "latin1"));
  const status = readFileSync(join(process, "status"), "latin1");
  const cgroup = readFileSync(join(process, "cgroup"), "latin1");
  return {
    startTicks,
    name: comm.slice(0, 64),
    uid: Number(/^Uid:\s+\d+\s+(\d+)/m.exec(status)?.[1] ?? -1),
    unit: /\/([^/\n]+\.(?:service|scope))(?:\/|$)/m.exec(cgroup)?.[1] ?? null,
  };
}

/** Sends a signal to a process, or returns false if the process that started at `startTicks` has ended. */
export function signalHolder(root: string, holder: DeviceHolder, signal: "SIGTERM" | "SIGKILL"): boolean {
  try {
    if (root !== "/") refuseStranger(root, holder.pid);
    if (factsOf(join(root, "proc", String(holder.pid))).startTicks !== holder.startTicks) return false;
    process.kill(holder.pid, signal);
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/**
 * In a test, a pid in the folder that stands for /proc may be the pid of any process of the computer. In a test, `signalHolder` signals a process
 * only if the process's entry in the test's folder is a link into the real /proc.
 */
function refuseStranger(root: string, pid: number): void {
  const entry = join(root, "proc", String(pid));
  if (lstatSync(entry).isSymbolicLink() && readlinkSync(entry) === `/proc/${pid}`) return;
  throw new Error(`${root} stands for a host, and process ${pid} of this machine is not signalled for it.`);
}
