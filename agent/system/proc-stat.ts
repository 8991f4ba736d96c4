export interface ProcStat {
  readonly comm: string;
  /** The state of a process's first thread, for example R (runs), S (sleeps), D (blocked in the kernel) or Z (ended). */
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  readonly terminal: number;
  readonly isKernelThread: boolean;
  readonly threads: number;
  /**
   * When a process started, in clock ticks since boot. A pid and a start time together identify one process, because Linux uses each pid many times.
   */
  readonly startTicks: string;
}

/** The kernel's flag PF_KTHREAD in the ninth field of `/proc/PID/stat`, which no program can set. */
const KERNEL_THREAD = 0x0020_0000;

/** In /proc/PID/stat, a program's name may contain spaces and parentheses, so the fields after the name begin at the last parenthesis. */
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

/** If the first thread has ended, Linux shows the files and program of the process only in the /proc folders of other threads. */
export const hasFirstThreadEnded = ({ state }: Pick<ProcStat, "state">): boolean => state === "Z" || state === "X";

/**
 * An ended process has the state Z until its parent process has collected the exit status. A process whose first thread has ended also has the state
 * Z, although its other threads still run.
 */
export const hasEnded = ({ state, threads }: Pick<ProcStat, "state" | "threads">): boolean =>
  state === "X" || (state === "Z" && !(threads > 1));
