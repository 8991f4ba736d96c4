import { spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { containerRights } from "./container-rights.ts";
import { isGone, namesIfThere } from "./proc-files.ts";
import { hasFirstThreadEnded, parseStat } from "./proc-stat.ts";

/** A process in the host's /proc, which may run in a pid namespace or user namespace of its own, for example in a container. */
export interface HostProcess {
  readonly pid: number;
  /**
   * When a process started, in clock ticks since boot. A pid and a start time together identify one process, because Linux uses each pid many times.
   */
  readonly startTicks: string;
  /** The real, effective, saved and file-system uid of a process. */
  readonly uids: readonly number[];
  /** The uid with which a process's login session began, which `sudo` and `setuid` do not change, or null without a session. */
  readonly loginUid: number | null;
  readonly state: string;
  readonly threads: number;
  readonly comm: string;
  readonly parent: number;
  readonly terminal: number;
  readonly cgroups: readonly string[];
}

export interface ProcessTable {
  /**
   * Reads all processes of the host except kernel threads. While it reads the processes one by one, `read` pauses regularly for the agent's other
   * work.
   */
  read(): Promise<readonly HostProcess[]>;
  signal(process: HostProcess, signal: NodeJS.Signals): boolean;
  /** Sends SIGKILL to all processes of a uid in one step, so that no process can escape by starting another process. */
  killAllOf(uid: number): Promise<void>;
  /**
   * Ends all processes in the cgroup of a user's login sessions by the kernel's `cgroup.kill`. `killSlice` returns false if the kernel lacks
   * `cgroup.kill`, or if the user has no cgroup of login sessions.
   */
  killSlice(uid: number): boolean;
  containerRights(process: HostProcess): ReturnType<typeof containerRights>;
  /** Returns a thread of a process, if possible one that is blocked in the kernel (state D), or null if the process has ended. */
  stuckThread(pid: number): StuckThread | null;
}

interface StuckThread {
  readonly tid: number;
  readonly state: string;
  /** The kernel function in which the thread waits, or an empty text if Linux does not tell the function. */
  readonly waitsIn: string;
}

const NO_LOGIN_UID = 4_294_967_295;
const KTHREADD = 2;
const KILL_TIMEOUT_MS = 10_000;
/**
 * How many milliseconds the agent may read processes before it lets its other work continue. On a host with 5,000 processes, a read of all processes
 * takes half a second.
 */
const SLICE_MS = 10;

export function processTableOf(root: string): ProcessTable {
  const proc = join(root, "proc");
  const refuse = (): void => {
    if (root !== "/") throw new Error(`${root} stands for a host, and no process of this machine is signalled for it.`);
  };
  return {
    read: () => readProcesses(proc),
    signal(target, signal) {
      refuse();
      const stat = readProc(join(proc, String(target.pid), "stat"));
      if (stat === null || parseStat(stat).startTicks !== target.startTicks) return false;
      return isDelivered(() => process.kill(target.pid, signal));
    },
    async killAllOf(uid) {
      refuse();
      if (!Number.isInteger(uid) || uid < 1) throw new Error(`All processes of uid ${uid} must not be killed.`);
      // With the pid -1, the kernel signals all processes of the sender's uid in one step.
      const child = spawn("/bin/kill", ["-KILL", "--", "-1"], {
        uid,
        gid: uid,
        cwd: "/",
        env: { LC_ALL: "C" },
        stdio: "ignore",
        timeout: KILL_TIMEOUT_MS,
        killSignal: "SIGKILL",
      });
      // The exit status of `kill` does not matter, because the caller kills the remaining processes one by one. Node.js emits the event "error" on a
      // host without /bin/kill.
      await new Promise<void>((resolve) => {
        child.once("exit", () => resolve());
        child.once("error", () => resolve());
      });
    },
    killSlice(uid) {
      refuse();
      try {
        // Linux before 5.14 has no file cgroup.kill, and nobody can create files in the cgroup file system.
        writeFileSync(`/sys/fs/cgroup/user.slice/user-${uid}.slice/cgroup.kill`, "1", { flag: "r+" });
        return true;
      } catch (error) {
        if (isGone(error)) return false;
        throw error;
      }
    },
    containerRights: ({ pid }) => containerRights(proc, pid),
    stuckThread: (pid) => stuckThread(join(proc, String(pid), "task")),
  };
}

/**
 * A list of processes does not show the host at one moment, because processes start and end while the agent reads the list. A caller that must know
 * that no process is left reads the list of processes twice.
 */
async function readProcesses(proc: string): Promise<HostProcess[]> {
  const processes: HostProcess[] = [];
  let sliceEnd = performance.now() + SLICE_MS;
  for (const name of readdirSync(proc)) {
    const process = /^[0-9]+$/.test(name) ? readProcess(proc, Number(name)) : null;
    if (process !== null) processes.push(process);
    if (performance.now() < sliceEnd) continue;
    await breathe();
    sliceEnd = performance.now() + SLICE_MS;
  }
  return processes;
}

function readProcess(proc: string, pid: number): HostProcess | null {
  const folder = join(proc, String(pid));
  const status = readProc(join(folder, "status"));
  if (status === null) return null;
  const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)?.[1] ?? "";
  const uids = field("Uid").split(/\s+/).map(Number);
  const parent = Number(field("PPid"));
  // Every kernel thread has the parent kthreadd, which no other process can get as its parent.
  if ((pid === KTHREADD || parent === KTHREADD) && uids.every((uid) => uid === 0)) return null;
  const stat = readProc(join(folder, "stat"));
  const cgroup = readProc(join(folder, "cgroup"));
  if (stat === null || cgroup === null) return null;
  const login = Number(readProc(join(folder, "loginuid")) ?? NO_LOGIN_UID);
  return {
    pid,
    uids,
    loginUid: login === NO_LOGIN_UID ? null : login,
    cgroups: cgroup.trimEnd().split("\n"),
    ...parseStat(stat),
  };
}

function stuckThread(tasks: string): StuckThread | null {
  const alive = namesIfThere(tasks).flatMap((tid) => {
    const text = readProc(join(tasks, tid, "stat"));
    const stat = text === null ? null : parseStat(text);
    return stat === null || hasFirstThreadEnded(stat) ? [] : [{ tid, state: stat.state }];
  });
  const stuck = alive.find(({ state }) => state === "D") ?? alive[0];
  if (stuck === undefined) return null;
  const wait = readProc(join(tasks, stuck.tid, "wchan"))?.trim() ?? "";
  return { tid: Number(stuck.tid), state: stuck.state, waitsIn: wait === "0" ? "" : wait };
}

/** `readProc` returns null if the process has ended, or if the kernel lacks the file of /proc. */
function readProc(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

function isDelivered(send: () => void): boolean {
  try {
    send();
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}
