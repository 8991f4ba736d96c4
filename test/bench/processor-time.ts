import { readFileSync } from "node:fs";

/** Linux counts processor time in ticks of 10 ms. */
const TICK_MS = 10;

/**
 * Returns the processor time of a process, in milliseconds. In /proc/PID/stat the program's name may contain spaces, so `cpuMs` counts only the
 * fields after the name.
 */
export function cpuMs(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}
