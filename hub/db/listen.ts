/**
 * Wake-ups by LISTEN/NOTIFY. A notification is only a hint, and it may be lost while the connection is down. The receiver therefore reads its tables
 * for the current state, and `onReconnect` tells it to read them after every gap.
 */
import { Client } from "pg";
import type { Log } from "../../shared/log.ts";
import { pause } from "../timing/pause.ts";

export type ListenOptions = {
  url: string;
  applicationName: string;
  channels: readonly string[];
  log: Log;
  /** `payload` is "" if the sender gave none. The function must not throw. */
  onNotify(channel: string, payload: string): void;
  /** Called after each successful connect, including the first one, because earlier notifications were not received. */
  onReconnect(): void;
};

export type Listener = {
  /** Resolves when the channels are listened to for the first time. */
  ready: Promise<void>;
  close(): Promise<void>;
};

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;
/** A query at this interval finds a dead connection that TCP does not report, e.g. after a firewall dropped the flow. */
const PROBE_EVERY_MS = 30_000;

/** Full jitter, so that several hubs do not all reconnect to a restarted database at the same moment. */
export function reconnectDelay(attempt: number, random: number): number {
  return Math.round(random * Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt));
}

export function listen(options: ListenOptions): Listener {
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const finished = listenUntil(stop.signal, options, ready.resolve);
  return {
    ready: ready.promise,
    close: async () => {
      stop.abort();
      await finished;
      ready.resolve();
    },
  };
}

async function listenUntil(signal: AbortSignal, options: ListenOptions, onReady: () => void): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const error = await listenOnce(signal, options, () => {
      failures = 0;
      onReady();
    });
    if (signal.aborted) return;
    options.log.warn("database listener lost its connection, reconnecting", { error: error.message, failures });
    await pause(reconnectDelay(failures, Math.random()), signal);
    failures += 1;
  }
}

/** Holds one connection until it breaks or `signal` fires. Returns the error that ended the connection. */
async function listenOnce(signal: AbortSignal, options: ListenOptions, onListening: () => void): Promise<Error> {
  const client = new Client({
    connectionString: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: 10_000,
    query_timeout: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  const ended = Promise.withResolvers<Error>();
  client.on("error", ended.resolve);
  client.on("end", () => ended.resolve(new Error("The server closed the connection")));
  client.on("notification", ({ channel, payload }) => options.onNotify(channel, payload ?? ""));
  const onAbort = () => ended.resolve(new Error("The listener was closed"));
  signal.addEventListener("abort", onAbort, { once: true });
  const probe = setInterval(() => client.query("select 1").catch(ended.resolve), PROBE_EVERY_MS);
  try {
    await client.connect();
    for (const channel of options.channels) await client.query(`listen ${client.escapeIdentifier(channel)}`);
    onListening();
    options.onReconnect();
    return await ended.promise;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    clearInterval(probe);
    signal.removeEventListener("abort", onAbort);
    // A broken connection may fail to close, too. The connection's error has already been returned.
    await client.end().catch(() => undefined);
  }
}
