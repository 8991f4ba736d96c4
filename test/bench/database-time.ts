import { readFileSync } from "node:fs";
import { sql } from "../../hub/db/orm.ts";
import type { Db } from "../../hub/db/tx.ts";
import { cpuMs } from "./processor-time.ts";

/** Linux counts processor time in ticks of 10 ms. */
const TICK_MS = 10;

/** Returns the fields of /proc/PID/stat after the program's name. */
function statOf(pid: number): string[] {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  return fields.split(" ");
}

/**
 * Returns the processor time that the database has used for its clients, in milliseconds. PostgreSQL works for one statement in several processes, and the
 * server counts the time of those that have ended. Unlike the time that a client waits, the processor time hardly depends on other work of the machine.
 */
export async function databaseCpuMs(db: Db): Promise<number> {
  const { rows } = await db.execute<{ pid: number }>(
    sql`select pid from pg_stat_activity where backend_type = 'client backend'`,
  );
  const [first] = rows;
  if (first === undefined) throw new Error("the database has no client");
  const server = statOf(Number(statOf(first.pid)[1]));
  const ended = (Number(server[13]) + Number(server[14])) * TICK_MS;
  return rows.reduce((sum, { pid }) => sum + cpuMs(pid), ended);
}
