import { readFileSync } from "node:fs";

/** Linux counts processor time in ticks of 10 ms. */
const TICK_MS = 10;

/** User and system time of a process. In /proc/PID/stat the program's name may contain spaces, so the function counts the fields after the name. */
export function cpuMs(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}
