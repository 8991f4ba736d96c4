import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { type Reading, Unreadable } from "./reading.ts";

export interface Process {
  readonly pid: number;
  readonly comm: string;
  readonly isKernelThread: boolean;
  readonly isZombie: boolean;
  /** The start time of the process since the boot, which tells two processes with one pid apart. */
  readonly startedAt: string;
  /** Real, effective, saved and file system user id. */
  readonly uids: readonly number[];
  readonly tracer: number;
  /** The arguments of the process, or an empty list. */
  readonly args: readonly string[];
  readonly cgroup: string;
  /** The program of the process, or null for a kernel thread. */
  readonly exe: string | null;
}

/** The flag PF_KTHREAD in the ninth field of /proc/<pid>/stat. A program cannot set it. */
const KERNEL_THREAD = 0x0020_0000;

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);
/** True if the process ended while it was read. */
export const isGone = (error: unknown): boolean => codeOf(error) === "ENOENT" || codeOf(error) === "ESRCH";

export async function pidsOf({ root }: Reading): Promise<number[]> {
  const names = await readdir(join(root, "proc"));
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

export async function readProcesses(reading: Reading): Promise<Process[]> {
  const processes: Process[] = [];
  for (const pid of await pidsOf(reading)) {
    reading.signal.throwIfAborted();
    try {
      processes.push(await readProcess(reading, pid));
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return processes;
}

async function readProcess(reading: Reading, pid: number): Promise<Process> {
  const folder = join(reading.root, "proc", String(pid));
  const [stat, status, cmdline, cgroup] = await Promise.all(
    ["stat", "status", "cmdline", "cgroup"].map((file) => readFile(join(folder, file), "utf8")),
  );
  if (stat === undefined || status === undefined) throw new Unreadable(`/proc/${pid} cannot be read.`);
  // The second field is the name in parentheses, and the name may contain spaces and parentheses.
  const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const isKernelThread = (Number(rest[5]) & KERNEL_THREAD) !== 0;
  return {
    pid,
    comm: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")),
    isKernelThread,
    isZombie: state === "Z" || state === "X",
    startedAt: rest[18] ?? "",
    uids: fieldOf(status, "Uid").split(/\s+/).map(Number),
    tracer: Number(fieldOf(status, "TracerPid")),
    args: (cmdline ?? "").split("\0").filter((word) => word !== ""),
    cgroup: cgroup ?? "",
    exe: isKernelThread || state === "Z" || state === "X" ? null : await programOf(folder, pid),
  };
}

const fieldOf = (status: string, field: string): string =>
  new RegExp(`^${field}:\\s*(.*)$`, "m").exec(status)?.[1]?.trim() ?? "";

async function programOf(folder: string, pid: number): Promise<string | null> {
  try {
    return await readlink(join(folder, "exe"));
  } catch (error) {
    // The init process may hold a right that the agent lacks. A tenant cannot replace the init process while the host runs.
    if (pid === 1 && codeOf(error) === "EACCES") return null;
    throw error;
  }
}

/** The open files of a process: the number of each descriptor and what it points to. An ended process has none. */
export async function openFilesOf({ root }: Reading, pid: number): Promise<{ fd: string; target: string }[]> {
  const folder = join(root, "proc", String(pid), "fd");
  try {
    const found: { fd: string; target: string }[] = [];
    for (const fd of await readdir(folder)) {
      try {
        found.push({ fd, target: await readlink(join(folder, fd)) });
      } catch (error) {
        if (!isGone(error)) throw error;
      }
    }
    return found;
  } catch (error) {
    if (isGone(error) || (pid === 1 && codeOf(error) === "EACCES")) return [];
    throw error;
  }
}

/** Returns true for a user id of a person: not of the system, not of a service's temporary account, not nobody. */
export const isPersonal = (uid: number): boolean =>
  (uid >= 1_000 && uid < 61_184) || (uid > 65_535 && uid < 4_294_967_294);
