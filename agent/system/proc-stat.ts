/** The facts that Linux tells about a process in `/proc/PID/stat` (proc_pid_stat(5)). */
export interface ProcStat {
  /** The name of the program, which the process itself may change. */
  readonly comm: string;
  /** The state letter of the process's first thread, for example R (runs), S (sleeps), D (blocked in the kernel) or Z (ended). */
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  /** The device number of the process's controlling terminal, or 0 if the process has no terminal. */
  readonly terminal: number;
  readonly isKernelThread: boolean;
  readonly threads: number;
  /**
   * When the process started, in clock ticks since boot. Pid and start time together identify one process, because Linux uses each pid many times.
   */
  readonly startTicks: string;
}

/** The kernel's flag PF_KTHREAD in the ninth field of `/proc/PID/stat`, which no program can set. */
const KERNEL_THREAD = 0x0020_0000;

/**
 * Parses the text of `/proc/PID/stat`. The process's name may contain spaces and parentheses, so the fields after the name begin at the last
 * parenthesis.
 */
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

/**
 * Whether the first thread of a process has ended. If other threads of the process still run, Linux shows the process's files and program only in
 * these threads' folders of /proc.
 */
export const hasFirstThreadEnded = ({ state }: Pick<ProcStat, "state">): boolean => state === "Z" || state === "X";

/**
 * Whether a process has ended. A process that has ended shows the state Z until the parent process has collected the exit status. A process of which
 * only the first thread has ended also shows the state Z, but its other threads still run.
 */
export const hasEnded = ({ state, threads }: Pick<ProcStat, "state" | "threads">): boolean =>
  state === "X" || (state === "Z" && !(threads > 1));
