import type { Client } from "pg";
import { Servers } from "./servers.ts";

/**
 * Opens one connection outside the pool, for a caller whose work needs one database session from its begin to its end. `connectOnce` tries each
 * server that the database URL names once. If no server that the database URL names can be used, `connectOnce` throws the error of the first server,
 * which is the primary server in most URLs.
 */
export async function connectOnce(url: string, applicationName: string): Promise<Client> {
  const servers = Servers.of(url);
  const faults: unknown[] = [];
  for (let tries = 0; tries < servers.count; tries += 1) {
    const isFirst = servers.isAtFirst;
    const client = new (servers.connections())({
      application_name: applicationName,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    });
    // A lost connection rejects the running query, so the listener for pg's event 'error' only keeps the event from ending the hub's process.
    client.on("error", () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (isFirst) faults.unshift(error);
      else faults.push(error);
      // The connection to this server has already failed, so an error while closing it is ignored.
      await client.end().catch(() => undefined);
    }
  }
  throw faults[0];
}
