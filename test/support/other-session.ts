import type { Pool } from "pg";
import { until } from "./until.ts";

/**
 * Runs the statements in a database session of another hub, and sends the request before the other session commits. Throws if the request is answered
 * without waiting for the other session; returns the answer of the request after the commit.
 */
export async function afterAnotherSession<T>(
  pool: Pool,
  statements: readonly (readonly [text: string, values: readonly unknown[]])[],
  request: () => Promise<T>,
): Promise<T> {
  const other = await pool.connect();
  const stop = new AbortController();
  try {
    await other.query("begin");
    for (const [text, values] of statements) await other.query(text, [...values]);
    const { rows } = await other.query<{ pid: number }>("select pg_backend_pid() as pid");
    const waiting = async () => {
      const text = "select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))";
      return (await pool.query(text, [rows[0]?.pid])).rows.length > 0 ? "waits" : undefined;
    };
    const sent = request();
    const first = await Promise.race([
      sent.then((answer) => `was answered: ${JSON.stringify(answer)}`, String),
      until("the request to wait for the other session", waiting, { signal: stop.signal }).catch(String),
    ]);
    if (first !== "waits") throw new Error(`The request did not wait for the other session, and ${first}`);
    await other.query("commit");
    return await sent;
  } finally {
    stop.abort();
    await other.query("rollback");
    other.release();
  }
}
