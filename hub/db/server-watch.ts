/**
 * A database server that hangs, or whose machine has lost its power, closes no connection. Each SQL statement on a connection to a silent database
 * server would wait for its own time limit. The hub checks the database server by queries on a connection of its own, so that a slow statement of the
 * hub does not count as a silent server.
 */
import type { Client } from "pg";
import type { Log } from "../../shared/log.ts";
import { pause } from "../timing/pause.ts";
import { Servers } from "./servers.ts";

export type ServerWatchOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly log: Log;
  readonly askEveryMs?: number;
  /** The database server counts as silent if it has not answered a query for `PATIENCE` ticks of `tickMs`. */
  readonly tickMs?: number;
};

const PATIENCE = 5;

export function watchServer(options: ServerWatchOptions): { close(): Promise<void> } {
  const stop = new AbortController();
  const finished = watchUntil(stop.signal, options);
  return {
    close: async () => {
      stop.abort();
      await finished;
    },
  };
}

async function watchUntil(signal: AbortSignal, options: ServerWatchOptions): Promise<void> {
  const { url, applicationName, log, askEveryMs = 3_000, tickMs = 1_000 } = options;
  const servers = Servers.of(url);
  while (!signal.aborted) {
    const client = new (servers.connections())({
      application_name: applicationName,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    });
    try {
      await client.connect();
      while (!signal.aborted) {
        if (!(await answers(client, tickMs, signal))) {
          log.warn("the database server is silent, ending all connections to the server");
          servers.drop(client);
          break;
        }
        await pause(askEveryMs, signal);
      }
    } catch {
      // The server refused or ended the connection. The other connections to the database server need no action here, because their users notice a
      // failure of the server themselves.
    } finally {
      // An attempt to close a failed connection may fail as well.
      await client.end().catch(() => undefined);
    }
    await pause(tickMs, signal);
  }
}

/**
 * Returns false if the database server has not answered a query within `PATIENCE` ticks. The wait for the server's answer consists of several short
 * ticks, because an answer may wait in the socket while this process is stopped or busy. After each tick, the process has read its sockets, and finds
 * the answer of the database server if it has arrived.
 */
async function answers(client: Client, tickMs: number, signal: AbortSignal): Promise<boolean> {
  const asked = client.query("select 1").then(() => true);
  for (let tick = 0; tick < PATIENCE && !signal.aborted; tick += 1) {
    const answered = await Promise.race([asked, pause(tickMs, signal).then(() => false)]);
    if (answered) return true;
  }
  return signal.aborted;
}
