import { spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { type Binaries, findBinaries } from "../../hub/db/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { readPostmaster } from "../../hub/db/embedded/postmaster.ts";
import { identity, run, SERVER_ENVIRONMENT, type ServerUser } from "../../hub/db/embedded/run.ts";
import { findServerUser } from "../../hub/db/embedded/server-user.ts";
import { freePort } from "./free-port.ts";
import { quietLog } from "./log.ts";
import { until } from "./until.ts";

/** Two PostgreSQL servers, of which the second is a synchronous standby server of the first. */
export interface PostgresPair {
  /** The URL that names both servers, as an operator writes it. */
  readonly url: string;
  readonly standbyUrl: string;
  /** Kills the primary server with SIGKILL. */
  killPrimary(): Promise<void>;
  /** Stops all processes of the primary server with SIGSTOP, so that its connections stay open and are silent, as after a power loss. */
  hangPrimary(): Promise<void>;
  /** Makes the standby server the primary server. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

async function ask(url: string, ...statements: readonly string[]): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}

/** Returns the programs of an installed PostgreSQL with `pg_basebackup`, or null, because the npm package has no such program. */
export async function pairPrograms(): Promise<Binaries | null> {
  const user = await findServerUser(undefined, quietLog);
  const found = await findBinaries({ home: "/", dataDir: "/nonexistent", user, log: quietLog, source: "system" }).catch(
    () => null,
  );
  return found !== null && existsSync(join(found.binDir, "pg_basebackup")) ? found : null;
}

export async function startPostgresPair(programs: Binaries, stateDir: string): Promise<PostgresPair> {
  mkdirSync(stateDir, { recursive: true });
  chmodSync(stateDir, 0o711);
  const user = await findServerUser(undefined, quietLog);
  const primary = await startEmbeddedPostgres({ stateDir, log: quietLog, binDir: programs.binDir });
  const data = join(stateDir, "standby");
  mkdirSync(data, { mode: 0o700 });
  if (user !== undefined) chownSync(data, user.uid, user.gid);
  const copied = await run(
    join(programs.binDir, "pg_basebackup"),
    ["-d", primary.url.replace("/muster?", "/postgres?"), "-D", data, "-R", "-X", "stream", "-c", "fast"],
    user,
  );
  if (copied.status !== 0) throw new Error(`pg_basebackup: ${copied.output}`);
  const port = await freePort();
  startStandby(programs, data, port, user, join(stateDir, "standby.log"));
  const at = new URL(primary.url);
  const standby = new URL(primary.url);
  standby.port = String(port);
  await until("the standby server follows", async () => {
    const rows = await ask(primary.url, "select 1 from pg_stat_replication where state = 'streaming'");
    return rows.length > 0 ? true : undefined;
  });
  // A commit waits until the standby server has it on its disk, so a promoted standby server lacks no acknowledged commit.
  await ask(primary.url, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()");
  await until("the standby server is synchronous", async () => {
    const rows = await ask(primary.url, "select 1 from pg_stat_replication where sync_state = 'sync'");
    return rows.length > 0 ? true : undefined;
  });
  const killAt = async (folder: string): Promise<void> => {
    const postmaster = await readPostmaster(folder);
    if (postmaster !== undefined) process.kill(postmaster.pid, "SIGKILL");
  };
  const hung: number[] = [];
  return {
    url: `postgres://${at.username}:${at.password}@${at.host},${standby.host}${at.pathname}${at.search}`,
    standbyUrl: standby.href,
    killPrimary: () => killAt(join(stateDir, "postgres/cluster/data")),
    hangPrimary: async () => {
      const postmaster = await readPostmaster(join(stateDir, "postgres/cluster/data"));
      if (postmaster === undefined) throw new Error("The primary server does not run.");
      const { pid } = postmaster;
      // A stopped postmaster starts no process that would be missed.
      process.kill(pid, "SIGSTOP");
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
      hung.push(pid, ...children);
      for (const child of children) process.kill(child, "SIGSTOP");
    },
    promote: async () => {
      await ask(standby.href, "select pg_promote(true, 60)");
    },
    stop: async () => {
      for (const pid of hung) process.kill(pid, "SIGKILL");
      await killAt(data).catch(() => undefined);
      await primary.stop();
    },
  };
}

function startStandby({ binDir }: Binaries, data: string, port: number, user: ServerUser, logFile: string): void {
  const settings = {
    port: String(port),
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const log = openSync(logFile, "a");
  spawn(join(binDir, "postgres"), ["-D", data, ...args], {
    ...identity(user),
    cwd: "/",
    env: SERVER_ENVIRONMENT,
    detached: true,
    stdio: ["ignore", log, log],
  }).unref();
}
