import { readFileSync } from "node:fs";

/** What Linux counts processor time in. */
const TICK_MS = 10;

/** User and system time; the fields after the name, which may hold spaces. */
export function cpuMs(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}
