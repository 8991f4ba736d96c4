/**
 * The hub's default database is a PostgreSQL server that the hub starts itself (decision P7). If the hub is killed, its embedded PostgreSQL server
 * keeps running, and the next hub uses that server. Several hubs may share one embedded PostgreSQL server. Code outside `hub/db/embedded` knows only
 * the URL of the database.
 */
import { resolve } from "node:path";
import type { Log } from "../../../shared/log.ts";
import { findBinaries } from "./binaries.ts";
import { type ClusterPaths, createCluster, DATABASE_USER, prepareHome, readIfThere } from "./cluster.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { withLaunchLock } from "./launch-lock.ts";
import type { ServerUser } from "./run.ts";
import { adoptServer, type Connection, startServer, stopServer } from "./server.ts";
import { findServerUser } from "./server-user.ts";
import { isAnothers, takeOver } from "./take-over.ts";

const DATABASE = "muster";

export type EmbeddedPostgresOptions = {
  /** The state folder contains all files of the database unless `<stateDir>/postgres/home` names another folder. */
  stateDir: string;
  log: Log;
  /** If `binDir` names a folder, the hub searches no other folder for the programs `postgres` and `initdb`. */
  binDir?: string | undefined;
  /** If `source` is set, the hub searches for PostgreSQL's programs only in a system PostgreSQL, or only in the npm package. */
  source?: "system" | "npm" | undefined;
  packageDir?: string | undefined;
  /**
   * The existing user that runs the PostgreSQL server if the hub's process is root. Without `runAs`, a root hub uses a user of its own for the
   * server, and creates that user if missing.
   */
  runAs?: string | undefined;
  /** If `stopOnClose` is false, `stop` leaves the database server running for the hub's next start. */
  stopOnClose?: boolean | undefined;
  /**
   * PostgreSQL settings for a server that the hub starts, such as `shared_buffers`. Every user of the host that runs the hub can see the settings of
   * the PostgreSQL server in the process list.
   */
  settings?: Readonly<Record<string, string>> | undefined;
};

export type EmbeddedPostgres = {
  /** The database's URL with the password, which must never be logged. */
  url: string;
  adopted: boolean;
  version: string;
  /**
   * Shuts the database server down cleanly, unless another hub on this machine still uses the server. A caller closes its connection pool before it
   * calls `stop`, because the shutdown of the server cuts open connections.
   */
  stop(): Promise<void>;
};

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const user = await findServerUser(options.runAs, log);
  const paths = await prepareHome(resolve(options.stateDir), user, log);
  return await withLaunchLock(paths.lock, async () => {
    const running = await adoptOwn(paths, user);
    const connection = running ?? (await startFresh(paths, user, options));
    const adopted = running !== undefined;
    const version = await serverVersion(connection);
    await createDatabase(connection);
    log.info(adopted ? "adopted the running embedded database" : "started the embedded database", {
      version,
      port: connection.port,
      folder: paths.data,
    });
    const password = (await readIfThere(paths.password)) ?? "";
    let stopped: Promise<void> | undefined;
    return {
      // Without `sslmode` in the database URL, PGSSLMODE in the hub's environment would apply. The embedded database is on the hub's own machine, so
      // its connections need no TLS.
      url: `postgres://${DATABASE_USER}:${encodeURIComponent(password)}@127.0.0.1:${connection.port}/${DATABASE}?sslmode=disable`,
      adopted,
      version,
      stop: () => {
        stopped ??= release(paths, connection, options);
        return stopped;
      },
    };
  });
}

/**
 * If another user runs the PostgreSQL server, the hub stops that server and starts a server as the intended user. A user that runs the PostgreSQL
 * server controls the database.
 */
async function adoptOwn(paths: ClusterPaths, user: ServerUser): Promise<Connection | undefined> {
  const running = await adoptServer(paths);
  if (running === undefined || !(await isAnothers(paths.data, user))) return running;
  const others = await countOtherLaunchers(running);
  await running.client.end();
  if (others > 0)
    throw new EmbeddedPostgresError(
      "data_in_use",
      `The database in ${paths.data} runs as another user than ${user?.name}, and ${others} other hubs use it. Stop those hubs, start this hub, and then start them again.`,
    );
  await stopServer(paths);
  return undefined;
}

async function startFresh(
  paths: ClusterPaths,
  user: ServerUser,
  { log, binDir, source, packageDir, settings = {} }: EmbeddedPostgresOptions,
): Promise<Connection> {
  await takeOver(paths.data, user, log);
  const binaries = await findBinaries({ home: paths.home, dataDir: paths.data, user, log, binDir, source, packageDir });
  await createCluster(paths, binaries, user, log);
  return await startServer(paths, binaries, user, settings, log);
}

async function serverVersion({ client }: Connection): Promise<string> {
  const { rows } = await client.query<{ server_version: string }>("show server_version");
  return rows[0]?.server_version.split(" ")[0] ?? "";
}

async function createDatabase({ client }: Connection): Promise<void> {
  const { rowCount } = await client.query("select 1 from pg_database where datname = $1", [DATABASE]);
  if (rowCount === 0) await client.query(`create database ${DATABASE}`);
}

/**
 * While a hub uses the embedded database server, the hub keeps one connection open with the application name `muster-launcher`. A hub stops the
 * embedded database server only if no other hub has a connection with the application name `muster-launcher`. The hub counts the connections named
 * `muster-launcher` while it holds the launch lock, which a starting hub holds too, so the count never misses a hub that is just starting.
 */
async function release(paths: ClusterPaths, connection: Connection, options: EmbeddedPostgresOptions): Promise<void> {
  await withLaunchLock(paths.lock, async () => {
    const others = await countOtherLaunchers(connection);
    // The connection to the database may already be cut, so the hub ignores a failure to close the connection.
    await connection.client.end().catch(() => undefined);
    if (options.stopOnClose === false) return;
    if (others > 0) {
      options.log.info("leaving the embedded database running for other hubs", { others });
      return;
    }
    await stopServer(paths);
    options.log.info("stopped the embedded database");
  });
}

/** Returns the number of other hubs that use the database server, or zero if the connection to the database server is lost. */
async function countOtherLaunchers({ client }: Connection): Promise<number> {
  try {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
       where application_name = 'muster-launcher' and pid <> pg_backend_pid()`,
    );
    return rows[0]?.count ?? 0;
  } catch {
    return 0;
  }
}
