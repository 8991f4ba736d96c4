import { Client, type ClientConfig, Pool, type PoolClient, type PoolConfig } from "pg";

/**
 * A DATABASE_URL names one server or several, as PostgreSQL's own programs write it: `postgres://user:password@db-1:5432,db-2:5432/muster`. Of several
 * servers, for example a primary server and its standby servers, the hub uses the one that takes writes.
 */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]*)((?:\/[^?#]*)?)(\?[^#]*)?$/;
const TARGET = "target_session_attrs";
/** The values of `target_session_attrs` that ask for a server that takes writes; the other values ask for a server that may refuse writes. */
const WRITABLE_TARGETS = ["read-write", "primary"];
const MOST_SERVERS = 16;

/** Returns one URL for each server of a DATABASE_URL, without the attribute that only chooses among servers. */
export function serversOf(url: string): string[] {
  const [, before = "", hosts = "", path = "", query = ""] = PARTS.exec(url) ?? [];
  const settings = new URLSearchParams(query);
  if (!hosts.includes(",") && !settings.has(TARGET)) return [url];
  settings.delete(TARGET);
  return hosts.split(",").map((host) => `${before}${host}${path}${settings.size === 0 ? "" : `?${settings}`}`);
}

/** Returns why a DATABASE_URL cannot be used, without any part of it, or null if it can be used. */
export function databaseUrlFault(url: string): string | null {
  const urls = serversOf(url);
  if (!PARTS.test(url) || !urls.every((one) => URL.canParse(one)))
    return "must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, and may name several HOST:PORT with commas between them";
  if (urls.length > MOST_SERVERS) return `names more than ${MOST_SERVERS} servers`;
  const target = new URLSearchParams(PARTS.exec(url)?.[4] ?? "").get(TARGET);
  return target === null || WRITABLE_TARGETS.includes(target)
    ? null
    : `needs a server that takes writes: leave ${TARGET} out, or set it to read-write`;
}

class StandbyError extends Error {
  override readonly name = "StandbyError";
  /** The SQLSTATE of a write on a server that is read-only. */
  readonly code = "25006";
}

/** The time limit for connecting to a database server if the DATABASE_URL names several, because another server may answer. */
const ONE_OF_SEVERAL_MS = 5_000;

/**
 * Chooses the server for new connections. After a failed connection, the next connection tries the next server, so a hub whose server is gone finds
 * the new primary server by itself. If one user of a DATABASE_URL finds that a server has failed, all other users of that DATABASE_URL in the process
 * also connect to the next server.
 */
export class Servers {
  readonly #urls: readonly string[];
  #at = 0;
  readonly #faults = new WeakSet<Error>();
  readonly #open = new Map<Client, string>();
  private constructor(url: string) {
    this.#urls = serversOf(url);
  }

  static of(url: string): Servers {
    const servers = ofUrl.get(url) ?? new Servers(url);
    ofUrl.set(url, servers);
    return servers;
  }

  get count(): number {
    return this.#urls.length;
  }

  get isAtFirst(): boolean {
    return this.#at === 0;
  }

  /**
   * Returns a subclass of pg's class `Client`, for a pool or for one connection. Each new connection goes to the database server that `Servers` has
   * chosen by then.
   */
  connections(): typeof Client {
    const servers = this;
    return class extends Client {
      readonly #url: string;
      constructor(config?: string | ClientConfig) {
        const url = servers.#urls[servers.#at] ?? "";
        const given = typeof config === "object" ? config : {};
        const limit = servers.count > 1 ? { connectionTimeoutMillis: ONE_OF_SEVERAL_MS } : {};
        super({ ...given, ...limit, connectionString: url });
        this.#url = url;
        // The database server may end a session with the packet that accepts the login, or during the query of `#mustTakeWrites`. Until some code of
        // the hub uses the new database connection, no listener handles its event 'error', and an event 'error' without a listener ends the hub's
        // process. If the database server has ended the session, the next statement on the connection fails.
        this.on("error", () => undefined);
      }
      override connect(): Promise<Client>;
      override connect(callback: ((error: Error) => void) | ((error: null, client: Client) => void)): void;
      override connect(callback?: unknown): Promise<Client> | undefined {
        const connected = this.#connect();
        if (typeof callback !== "function") return connected;
        connected.then(
          () => void callback(null, this),
          (error: unknown) => void callback(error),
        );
        return undefined;
      }
      async #connect(): Promise<Client> {
        servers.#open.set(this, this.#url);
        this.once("end", () => servers.#open.delete(this));
        try {
          await super.connect();
          if (servers.count > 1) await this.#mustTakeWrites();
          return this;
        } catch (error) {
          servers.#leave(this.#url);
          if (error instanceof Error) servers.#faults.add(error);
          throw error;
        }
      }
      /** A standby database server, and a former primary server that was demoted, accepts connections but refuses all writes. */
      async #mustTakeWrites(): Promise<void> {
        const { rows } = await this.query<{ transaction_read_only: string }>("show transaction_read_only");
        if (rows[0]?.transaction_read_only === "off") return;
        // A pool forgets a new connection that has failed and does not close it, so the failed connection closes itself here.
        void this.end().catch(() => undefined);
        throw new StandbyError("The server takes no writes, because it is a standby server or read-only.");
      }
    };
  }

  /**
   * Ends all connections to the server of `silent`, a connection on which the server has not answered, so that their users connect again, if need be
   * to another server. Without the function `drop`, each user of a connection to the silent database server would wait for its own time limit.
   */
  drop(silent: Client): void {
    const url = this.#open.get(silent);
    if (url === undefined) return;
    this.#leave(url);
    const error = new Error("The database server is silent, so the hub has ended its connections to the server");
    for (const [client, of] of this.#open) if (of === url) client.connection.stream.destroy(error);
  }

  /**
   * True if the error says that no connection to a database server was made. `couldNotConnect` is false for the error of a pool whose connections are
   * all in use.
   */
  couldNotConnect(error: unknown): boolean {
    return error instanceof Error && (this.#faults.has(error) || this.couldNotConnect(error.cause));
  }

  /**
   * After a failed connection to the server `url`, the next connection goes to the next server in the list, unless another failed connection has
   * already chosen a server.
   */
  #leave(url: string): void {
    if (this.#urls[this.#at] === url) this.#at = (this.#at + 1) % this.#urls.length;
  }
}

const ofUrl = new Map<string, Servers>();

type Connected = (error: Error | undefined, client: PoolClient | undefined, release: (error?: unknown) => void) => void;

/**
 * A pool of database connections that tries each server once before an attempt to connect fails. A hub that starts after a database failover needs no
 * retry, although the first server of its DATABASE_URL is gone or is a standby server.
 */
export class ServersPool extends Pool {
  readonly #servers: Servers;
  constructor(servers: Servers, config: PoolConfig) {
    super({ ...config, Client: servers.connections() });
    this.#servers = servers;
  }
  override connect(): Promise<PoolClient>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<PoolClient> | undefined {
    const connected = this.#connect();
    if (callback === undefined) return connected;
    connected.then(
      (client) => callback(undefined, client, (error) => client.release(error as Error | undefined)),
      (error: Error) => callback(error, undefined, () => undefined),
    );
    return undefined;
  }
  async #connect(): Promise<PoolClient> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await super.connect();
      } catch (error) {
        if (tries >= this.#servers.count || !this.#servers.couldNotConnect(error)) throw error;
      }
    }
  }
}
