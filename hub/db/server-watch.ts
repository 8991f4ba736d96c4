/**
 * A database server that hangs, or whose machine has lost its power, closes no connection. Each statement would wait for its own time limit. The watch
 * asks the server on a connection of its own, so that a slow statement of the hub does not count as a silent server.
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
  /** The server is silent if it has not answered for `PATIENCE` ticks. */
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
      // The server refused or ended the connection. The users of other connections have learnt so in the same way.
    } finally {
      // A connection that has failed may also fail to close.
      await client.end().catch(() => undefined);
    }
    await pause(tickMs, signal);
  }
}

/**
 * Returns false if the server has not answered within `PATIENCE` ticks. The ticks are single pauses, because an answer may wait in the socket while
 * this process is stopped or busy. Between two pauses the process reads its sockets.
 */
async function answers(client: Client, tickMs: number, signal: AbortSignal): Promise<boolean> {
  const asked = client.query("select 1").then(() => true);
  for (let tick = 0; tick < PATIENCE && !signal.aborted; tick += 1) {
    const answered = await Promise.race([asked, pause(tickMs, signal).then(() => false)]);
    if (answered) return true;
  }
  return signal.aborted;
}
