/** What Linux tells about a process in `/proc/PID/stat` (proc_pid_stat(5)). */
export interface ProcStat {
  /** The name of the program, which the process itself may change. */
  readonly comm: string;
  /** The state letter of the first thread, for example R (runs), S (sleeps), D (blocked in the kernel) or Z (ended). */
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  /** The device number of the controlling terminal, or 0 without one. */
  readonly terminal: number;
  readonly isKernelThread: boolean;
  readonly threads: number;
  /** When the process started, in clock ticks since boot. The pid and the start together name one process, because pids are used again. */
  readonly startTicks: string;
}

/** The flag PF_KTHREAD. A program cannot set it. */
const KERNEL_THREAD = 0x0020_0000;

/** Parses the text of `/proc/PID/stat`. The name may contain spaces and parentheses, so the fields after it begin at the last parenthesis. */
export function parseStat(text: string): ProcStat {
  const end = text.lastIndexOf(")");
  const fields = text
    .slice(end + 2)
    .trimEnd()
    .split(" ");
  return {
    comm: text.slice(text.indexOf("(") + 1, end),
    state: fields[0] ?? "?",
    parent: Number(fields[1]),
    session: Number(fields[3]),
    terminal: Number(fields[4]),
    isKernelThread: (Number(fields[6]) & KERNEL_THREAD) !== 0,
    threads: Number(fields[17]),
    startTicks: fields[19] ?? "",
  };
}

/** The first thread of a process has ended. Its other threads may run, and Linux then shows the files and the program only in their folders. */
export const hasFirstThreadEnded = ({ state }: Pick<ProcStat, "state">): boolean => state === "Z" || state === "X";

/**
 * Whether a process has ended. A process that has ended shows the state Z until its parent has collected its exit status. A process of which only the
 * first thread has ended also shows the state Z, but its other threads still run.
 */
export const hasEnded = ({ state, threads }: Pick<ProcStat, "state" | "threads">): boolean =>
  state === "X" || (state === "Z" && !(threads > 1));
