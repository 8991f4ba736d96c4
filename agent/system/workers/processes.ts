import { readdirSync, readFileSync } from "node:fs";
import { uptime } from "node:os";
import { hasEnded, type ProcStat, parseStat } from "../proc-stat.ts";

export interface ProcessFacts extends ProcStat {
  readonly pid: number;
}

export function readProcess(pid: number): ProcessFacts | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH")) return null;
    throw error;
  }
  return { pid, ...parseStat(text) };
}

/** The living processes in the session of a worker process: the worker process, and the tools that it started. */
export function aliveInSession(leader: { readonly pid: number; readonly start_ticks: string }): ProcessFacts[] {
  const first = readProcess(leader.pid);
  // Linux gives the pid of a session's leader to another process only when the session has no process left.
  if (first !== null && first.startTicks !== leader.start_ticks) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? [])
    .filter((facts) => facts.session === leader.pid && !hasEnded(facts));
}

export function isLeaderAlive(leader: { readonly pid: number; readonly start_ticks: string }): boolean {
  const facts = readProcess(leader.pid);
  return facts !== null && facts.startTicks === leader.start_ticks && !hasEnded(facts);
}

/** Returns the kernel function in which a process waits, or an empty text if Linux does not tell the function. */
export function waitChannel(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/wchan`, "utf8").trim();
    return text === "0" ? "" : text;
  } catch (error) {
    // A process that has ended, or a kernel without the file `wchan`, gives an empty text.
    if (error instanceof Error && "code" in error) return "";
    throw error;
  }
}

export const bootSeconds = (): number => uptime();

/** The boot id of the running kernel, even if a folder stands for the host, because worker processes run on this kernel. */
export const kernelBootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

export function sendSignal(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH means that the process had ended before the agent sent the signal.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
