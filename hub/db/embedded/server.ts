import { spawn } from "node:child_process";
import { open, rename, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, DatabaseError } from "pg";
import type { Log } from "../../../shared/log.ts";
import type { Binaries } from "./binaries.ts";
import type { ClusterPaths } from "./cluster.ts";
import { DATABASE_USER, readIfThere } from "./cluster.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { isServedHere, readPostmaster, removeStaleLock } from "./postmaster.ts";
import { identity, SERVER_ENVIRONMENT, type ServerUser } from "./run.ts";

/** A start of the database server may take minutes, because the server may have to recover a big database after a crash. */
const START_WITHIN_MS = 300_000;
const STOP_WITHIN_MS = 120_000;
const LOG_BYTES_KEPT = 10_000_000;

export type Connection = { client: Client; port: number };

/** Connects to the PostgreSQL server that has the data folder open, or returns undefined if no server has the data folder open. */
export async function adoptServer(paths: ClusterPaths): Promise<Connection | undefined> {
  const deadline = Date.now() + START_WITHIN_MS;
  while (Date.now() < deadline) {
    const postmaster = await readPostmaster(paths.data);
    const connection = postmaster && (await connectTo(paths, postmaster.port));
    if (connection !== undefined) return connection;
    if ((await readIfThere(join(paths.data, "postmaster.pid"))) === undefined) return undefined;
    const served = await isServedHere(paths.data);
    if (served === false) await removeStaleLock(paths.data);
    if (served !== true) return undefined;
    await sleep(100);
  }
  throw timedOut(paths);
}

export async function startServer(
  paths: ClusterPaths,
  binaries: Binaries,
  user: ServerUser,
  settings: Readonly<Record<string, string>>,
  log: Log,
): Promise<Connection> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort(paths, attempt);
    const ended = await spawnServer(paths, binaries, user, { ...settings, port: String(port) });
    const connection = await untilAnswering(paths, port, ended);
    if (connection !== undefined) {
      await writeFile(paths.port, String(port));
      return connection;
    }
    // If the database server did not start, another hub may have started it first, or another program may have taken the chosen port.
    const other = await adoptServer(paths);
    if (other !== undefined) return other;
    if (attempt === 3)
      throw new EmbeddedPostgresError(
        "start_failed",
        `PostgreSQL did not start. The end of its log: ${await logTail(paths)}`,
      );
    log.warn("the embedded database did not start, trying again", { attempt, port });
  }
}

/**
 * Shuts the database server down cleanly and fast, and rolls back open transactions. `stopServer` returns when no server has the data folder open any
 * more.
 */
export async function stopServer(paths: ClusterPaths): Promise<void> {
  const postmaster = await readPostmaster(paths.data);
  if (postmaster === undefined || (await isServedHere(paths.data)) === false) return;
  process.kill(postmaster.pid, "SIGINT");
  const deadline = Date.now() + STOP_WITHIN_MS;
  while ((await readPostmaster(paths.data))?.pid === postmaster.pid && (await isServedHere(paths.data)) !== false) {
    if (Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        "stop_timed_out",
        `PostgreSQL (pid ${postmaster.pid}) did not stop; see ${paths.log}`,
      );
    }
    await sleep(20);
  }
}

/**
 * Connects to the PostgreSQL server on the given port, or returns undefined if no server answers on that port. A server of somebody else may use the
 * port, so the hub checks that the server on the port has the hub's data folder open.
 */
async function connectTo(paths: ClusterPaths, port: number): Promise<Connection | undefined> {
  const client = new Client({
    host: "127.0.0.1",
    port,
    user: DATABASE_USER,
    password: (await readIfThere(paths.password)) ?? "",
    database: "postgres",
    ssl: false,
    application_name: "muster-launcher",
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  // The hub ignores the event 'error' of the database connection, because `stop` notices a lost connection and a running query rejects.
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>("show data_directory");
    if (rows[0] && (await isSameFolder(rows[0].data_directory, paths.data))) return { client, port };
    await client.end();
    return undefined;
  } catch (error) {
    await client.end().catch(() => undefined);
    if (error instanceof DatabaseError && error.code === "28P01" && (await isServedHere(paths.data)) === true) {
      throw new EmbeddedPostgresError(
        "password_refused",
        `The embedded database refuses the password in ${paths.password}. Restore that file from a backup of the state folder`,
      );
    }
    return undefined;
  }
}

async function isSameFolder(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([stat(a).catch(() => undefined), stat(b)]);
  return one?.ino === other.ino && one.dev === other.dev;
}

/** Returns the database server's last port if that port is free, so that the URL in an operator's psql stays valid. */
async function choosePort(paths: ClusterPaths, attempt: number): Promise<number> {
  const remembered = Number(await readIfThere(paths.port));
  if (attempt === 1 && remembered > 0 && (await bindable(remembered)) !== undefined) return remembered;
  const free = await bindable(0);
  if (free === undefined) throw new EmbeddedPostgresError("start_failed", "No free TCP port on 127.0.0.1");
  return free;
}

function bindable(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? address?.port : undefined));
    });
  });
}

/** The signal that `spawnServer` returns fires when the PostgreSQL server has ended. */
async function spawnServer(
  paths: ClusterPaths,
  binaries: Binaries,
  user: ServerUser,
  settings: Readonly<Record<string, string>>,
): Promise<AbortSignal> {
  const all = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    cluster_name: "muster",
    max_connections: "200",
    log_checkpoints: "off",
    ...settings,
  };
  const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const output = await openLog(paths.log);
  const ended = new AbortController();
  const child = spawn(join(binaries.binDir, "postgres"), ["-D", paths.data, ...args], {
    ...identity(user),
    cwd: "/",
    env: SERVER_ENVIRONMENT,
    detached: true,
    stdio: ["ignore", output.fd, output.fd],
  });
  child.on("exit", () => ended.abort());
  child.on("error", () => ended.abort());
  child.unref();
  await output.close();
  return ended.signal;
}

async function untilAnswering(paths: ClusterPaths, port: number, ended: AbortSignal): Promise<Connection | undefined> {
  const deadline = Date.now() + START_WITHIN_MS;
  while (!ended.aborted) {
    const connection = await connectTo(paths, port);
    if (connection !== undefined) return connection;
    if (Date.now() > deadline) throw timedOut(paths);
    await sleep(50);
  }
  return undefined;
}

/** The hub renames a log file larger than `LOG_BYTES_KEPT` before it opens a new log file, and keeps only one renamed file. */
async function openLog(file: string) {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_BYTES_KEPT) await rename(file, `${file}.1`);
  return await open(file, "a", 0o600);
}

async function logTail(paths: ClusterPaths): Promise<string> {
  return ((await readIfThere(paths.log)) ?? "").trim().slice(-1500);
}

function timedOut(paths: ClusterPaths): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "start_timed_out",
    `PostgreSQL has not answered for ${START_WITHIN_MS / 1000} s; see ${paths.log}`,
  );
}
