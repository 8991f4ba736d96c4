/**
 * The default database: a PostgreSQL server that the hub starts itself (decision P7). If the hub is killed, the server keeps running and the next hub
 * adopts it. Several hubs may share one server. All other code sees only a URL.
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
  /** The state folder, created if missing. This folder contains all files of the database unless `<stateDir>/postgres/home` names another folder. */
  stateDir: string;
  log: Log;
  /** The folder with `postgres` and `initdb`. If this folder is set, no other folder is searched. */
  binDir?: string | undefined;
  /** Searches only for a system PostgreSQL, or only for the npm package. */
  source?: "system" | "npm" | undefined;
  /** A folder to use in place of the installed npm package. */
  packageDir?: string | undefined;
  /** An existing user that runs the server if this process is root. By default a user for this purpose, which is created if missing. */
  runAs?: string | undefined;
  /** If false, `stop` leaves the server running for the next start. */
  stopOnClose?: boolean | undefined;
  /** Settings for a server that is started here, such as `shared_buffers`. Such settings are visible in the process list. */
  settings?: Readonly<Record<string, string>> | undefined;
};

export type EmbeddedPostgres = {
  /** The URL with the password; it must never be logged. */
  url: string;
  /** True if the server was already running. */
  adopted: boolean;
  /** The server's version, such as "15.20". */
  version: string;
  /**
   * Shuts the server down cleanly, unless another hub on this machine still uses it. Close the pool first, because open connections are cut. A second
   * call is harmless.
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
      // Without `sslmode`, PGSSLMODE in the hub's environment would apply. The server is on this machine, so TLS is not needed.
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
 * A server that runs as another user, as earlier versions set it up, is stopped and started anew. If the hub used the running server, the other user
 * would keep control of the database.
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
 * Each hub keeps its launcher connection open while it uses the server. Counting the other hubs' connections therefore tells whether the server may
 * be stopped. The launch lock ensures that a hub that is just starting is counted too.
 */
async function release(paths: ClusterPaths, connection: Connection, options: EmbeddedPostgresOptions): Promise<void> {
  await withLaunchLock(paths.lock, async () => {
    const others = await countOtherLaunchers(connection);
    await connection.client.end().catch(() => undefined); // If the connection was cut, it is closed as it should be.
    if (options.stopOnClose === false) return;
    if (others > 0) {
      options.log.info("leaving the embedded database running for other hubs", { others });
      return;
    }
    await stopServer(paths);
    options.log.info("stopped the embedded database");
  });
}

/** Zero if the connection is lost: then the server is gone, or nothing is known about other hubs. */
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
