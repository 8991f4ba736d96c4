/**
 * The default database: a real PostgreSQL of the hub's own (decision P7). It outlives the hub when the hub is killed and
 * is then adopted by the next one; several hubs may share it. Everything above sees only a URL.
 */
import { resolve } from "node:path";
import type { Log } from "../../log.ts";
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
  /** Made if missing. All that the database needs to survive lies here, or where `<stateDir>/postgres/home` says. */
  stateDir: string;
  log: Log;
  /** Folder with `postgres` and `initdb`, instead of looking for one. */
  binDir?: string | undefined;
  /** Look only for a system PostgreSQL, or only at the npm package. */
  source?: "system" | "npm" | undefined;
  /** The npm package's folder, instead of the installed one. */
  packageDir?: string | undefined;
  /** Existing user that runs the server when this process is root. By default one of its own, which is made where it is missing. */
  runAs?: string | undefined;
  /** False: `stop` leaves the server running for the next start. */
  stopOnClose?: boolean | undefined;
  /** Server settings for a server started here, such as `shared_buffers`. They are visible in the process list. */
  settings?: Readonly<Record<string, string>> | undefined;
};

export type EmbeddedPostgres = {
  /** With the password: never to be logged. */
  url: string;
  /** The server was running already. */
  adopted: boolean;
  /** Of the server, such as "15.20". */
  version: string;
  /**
   * Shuts the server down cleanly, unless another hub on this machine still uses it. Close the pool first: connections
   * still open are cut. Safe to call twice.
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
      // sslmode, because PGSSLMODE in the hub's environment would else apply; the server is on this machine.
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

/** One that another user runs, as earlier versions had it, is stopped to be started anew: adopted, it would stay that user's. */
async function adoptOwn(paths: ClusterPaths, user: ServerUser): Promise<Connection | undefined> {
  const running = await adoptServer(paths);
  if (running === undefined || !(await isAnothers(paths.data, user))) return running;
  const others = await countOtherLaunchers(running);
  await running.client.end();
  if (others > 0)
    throw new EmbeddedPostgresError(
      "data_in_use",
      `The database in ${paths.data} is run as another user than ${user?.name}, and ${others} other hubs use it. Stop them, start this one, then them again.`,
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
 * The launcher's connection stays open as long as its hub uses the server, so counting those of others tells whether
 * it may be stopped. Under the launch lock, so that a hub that is just starting is counted too.
 */
async function release(paths: ClusterPaths, connection: Connection, options: EmbeddedPostgresOptions): Promise<void> {
  await withLaunchLock(paths.lock, async () => {
    const others = await countOtherLaunchers(connection);
    await connection.client.end().catch(() => undefined); // Cut meanwhile: closed is what it should be.
    if (options.stopOnClose === false) return;
    if (others > 0) {
      options.log.info("leaving the embedded database running for other hubs", { others });
      return;
    }
    await stopServer(paths);
    options.log.info("stopped the embedded database");
  });
}

/** Zero when the connection is gone: then the server is too, or nothing is known of others. */
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
