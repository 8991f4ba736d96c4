/**
 * `listen` wakes the hub by PostgreSQL's LISTEN/NOTIFY. A database notification is only a hint, because PostgreSQL does not deliver notifications
 * while the connection is down. A hub that gets a database notification reads the current state from the tables. After each interruption of its
 * connection, a hub reads the current state from the tables without waiting for a notification.
 */
import type { Log } from "../../shared/log.ts";
import { pause } from "../timing/pause.ts";
import { Servers } from "./servers.ts";

export type ListenOptions = {
  url: string;
  applicationName: string;
  channels: readonly string[];
  log: Log;
  /** The argument `payload` is "" if the database notification has no payload. A caller's `onNotify` must not throw. */
  onNotify(channel: string, payload: string): void;
  /**
   * The listener calls `onReconnect` after each successful connect, also the first, because the listener missed the notifications before the connect.
   */
  onReconnect(): void;
};

export type Listener = {
  /** The promise `ready` resolves when the listener listens on its channels for the first time. */
  ready: Promise<void>;
  close(): Promise<void>;
};

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;
/**
 * Every `PROBE_EVERY_MS` the listener runs a query, which finds a dead connection that TCP does not report, e.g. after a firewall dropped the flow.
 */
const PROBE_EVERY_MS = 30_000;

/** The delay before a reconnect is random, so that several hubs do not all reconnect to a restarted database at the same moment. */
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
  const servers = Servers.of(options.url);
  while (!signal.aborted) {
    const error = await listenOnce(signal, { ...options, servers }, () => {
      failures = 0;
      onReady();
    });
    if (signal.aborted) return;
    options.log.warn("database listener lost its connection, reconnecting", { error: error.message, failures });
    await pause(reconnectDelay(failures, Math.random()), signal);
    failures += 1;
  }
}

/** Holds one database connection that listens, until the connection breaks or `signal` aborts. */
async function listenOnce(
  signal: AbortSignal,
  options: ListenOptions & { readonly servers: Servers },
  onListening: () => void,
): Promise<Error> {
  const client = new (options.servers.connections())({
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
    // The listener returns the error that broke its connection, and ignores a failure to close the broken connection.
    await client.end().catch(() => undefined);
  }
}
