import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { descriptorTables, type Sameness } from "../descriptor-tables.ts";
import { codeOf, isGone } from "../proc-files.ts";
import { hasEnded, hasFirstThreadEnded, type ProcStat, parseStat } from "../proc-stat.ts";
import type { Reading } from "./reading.ts";

export interface Process {
  readonly pid: number;
  readonly comm: string;
  readonly isKernelThread: boolean;
  readonly isZombie: boolean;
  /** The time from boot to a process's start, which distinguishes two processes with one pid. */
  readonly startedAt: string;
  readonly uids: readonly number[];
  readonly tracer: number;
  readonly args: readonly string[];
  readonly cgroup: string;
  /** The path of a process's program, or null for a kernel thread. */
  readonly exe: string | null;
}

/** For how many milliseconds the walk over the threads of a process may run before the child process checks its deadlines. */
const SLICE_MS = 10;

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
  const stat = parseStat(await readFile(join(folder, "stat"), "utf8"));
  const running = await runningFolder(folder, stat);
  const [status = "", cgroup = "", cmdline = ""] = await Promise.all(
    [join(folder, "status"), join(folder, "cgroup"), join(running, "cmdline")].map((file) => readFile(file, "utf8")),
  );
  const { comm, isKernelThread, startTicks } = stat;
  const isZombie = hasEnded(stat);
  return {
    pid,
    comm,
    isKernelThread,
    isZombie,
    startedAt: startTicks,
    uids: fieldOf(status, "Uid").split(/\s+/).map(Number),
    tracer: Number(fieldOf(status, "TracerPid")),
    args: cmdline.split("\0").filter((word) => word !== ""),
    cgroup,
    exe: isKernelThread || isZombie ? null : await programOf(running, pid),
  };
}

/**
 * Returns the folder of /proc that shows a process's program and files. After the end of a process's first thread, only the folder of a running
 * thread shows the program and the files.
 */
async function runningFolder(folder: string, stat: ProcStat): Promise<string> {
  if (!hasFirstThreadEnded(stat) || hasEnded(stat)) return folder;
  for (const thread of await readdir(join(folder, "task"))) {
    const path = join(folder, "task", thread);
    try {
      if (!hasFirstThreadEnded(parseStat(await readFile(join(path, "stat"), "utf8")))) return path;
    } catch (error) {
      // A thread may have ended since `readdir` listed it, while another thread of its process still runs.
      if (!isGone(error)) throw error;
    }
  }
  return folder;
}

const fieldOf = (status: string, field: string): string =>
  new RegExp(`^${field}:\\s*(.*)$`, "m").exec(status)?.[1]?.trim() ?? "";

async function programOf(folder: string, pid: number): Promise<string | null> {
  try {
    return await readlink(join(folder, "exe"));
  } catch (error) {
    // The agent may not read the program of an init process that holds a right which the agent lacks. A tenant cannot replace the init process while
    // the host runs.
    if (pid === 1 && codeOf(error) === "EACCES") return null;
    throw error;
  }
}

/** Stands for the target of a descriptor whose path has more than 4,095 bytes, because no link in /proc can show such a path. */
export const LONG_TARGET = "/(a path of more than 4,095 bytes)";

export interface OpenFile {
  /** The path of the descriptor in /proc. */
  readonly descriptor: string;
  readonly target: string;
}

/**
 * Returns the open files of a process, also of its threads with descriptors of their own. A process that has ended has no open files. `sameness`
 * names the facts that must be equal so that two threads count as sharing their descriptors.
 */
export async function openFilesOf(reading: Reading, pid: number, sameness: Sameness = "path"): Promise<OpenFile[]> {
  const own = join(reading.root, "proc", String(pid));
  try {
    const found: OpenFile[] = [];
    let sliceEnd = performance.now() + SLICE_MS;
    for (const table of descriptorTables(own, sameness)) {
      for (const fd of table?.descriptors ?? []) {
        const descriptor = join(own, table?.folder ?? "", fd);
        const target = await targetOf(descriptor);
        if (target !== null) found.push({ descriptor, target });
      }
      if (performance.now() < sliceEnd) continue;
      await breathe();
      reading.signal.throwIfAborted();
      sliceEnd = performance.now() + SLICE_MS;
    }
    return found;
  } catch (error) {
    if (isGone(error) || (pid === 1 && codeOf(error) === "EACCES")) return [];
    throw error;
  }
}

async function targetOf(descriptor: string): Promise<string | null> {
  try {
    return await readlink(descriptor);
  } catch (error) {
    if (codeOf(error) === "ENAMETOOLONG") return LONG_TARGET;
    if (isGone(error)) return null;
    throw error;
  }
}
