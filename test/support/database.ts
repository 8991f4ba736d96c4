/**
 * Gives each test file its own database, which PostgreSQL copies from a template database. The tests migrate the template database only once for each
 * version of the migrations.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, DatabaseError } from "pg";
import type { Database } from "../../hub/db/client.ts";
import { openDatabase } from "../../hub/db/client.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { migrate } from "../../hub/db/migrate.ts";
import { TEST_SERVER_FOLDER } from "./database-server.ts";
import { storedRows } from "./database-text.ts";
import { knownSecrets, SecretLeaked, takeLoggedLeaks } from "./known-secrets.ts";
import { quietLog } from "./log.ts";
import type { Leak } from "./secret-search.ts";
import { unrecordedEnds } from "./tenancy-records.ts";

const MIGRATIONS = fileURLToPath(new URL("../../hub/db/migrations", import.meta.url));

/** The advisory lock that lets only one vitest worker create the template database. */
const TEMPLATE_LOCK = 74_101;

export type TestDatabase = {
  /** The database's URL for other processes and pools, which use TCP as in production. */
  url: string;
  name: string;
  /**
   * The pool of connections to the test's database, which opens its first connection at the first query. The pool uses the server's Unix socket if it
   * can, because a statement by TCP costs twice the processor time.
   */
  database: Database;
  /**
   * Drops the test's database. `drop` fails when a row or a line of `quietLog` contains a secret of the test data, and when a tenant's use of a host
   * ended without a sanitization record.
   */
  drop(): Promise<void>;
};

export async function createTestDatabase(): Promise<TestDatabase> {
  const { adminUrl, template, socketFolder } = await findServer();
  const name = `muster_test_${randomUUID().replaceAll("-", "")}`;
  await asAdmin(adminUrl, (admin) => whenUnused(() => admin.query(`create database ${name} template ${template}`)));
  const url = urlOf(adminUrl, name);
  const database = openDatabase({
    url: socketFolder === null ? url : bySocket(url, socketFolder),
    poolSize: 10,
    applicationName: "muster-test",
    log: quietLog,
  });
  return {
    url,
    name,
    database,
    drop: async () => {
      await database.close();
      const leaks = [...takeLoggedLeaks(), ...(await asAdmin(url, leaksInRows))];
      const unrecorded = await asAdmin(url, unrecordedEnds);
      await asAdmin(adminUrl, (admin) => admin.query(`drop database if exists ${name} with (force)`));
      if (leaks.length > 0) throw new SecretLeaked(leaks);
      if (unrecorded.length > 0)
        throw new Error(
          `tenants' uses ended without exactly one last sanitization record: ${JSON.stringify(unrecorded)}`,
        );
    },
  };
}

/** PostgreSQL searches its rows for secrets, so that the test process need not read a large database. */
async function leaksInRows(client: Client): Promise<Leak[]> {
  const secrets = knownSecrets();
  const rows = await storedRows(client, secrets.spellings);
  return rows.flatMap(({ table, text }) => secrets.leaksIn(`a row of ${table}`, text));
}

type TestServer = { readonly adminUrl: string; readonly template: string; readonly socketFolder: string | null };

let found: TestServer | undefined;

/** A vitest worker looks only once for the PostgreSQL server, because server and template database do not change during a test run. */
async function findServer(): Promise<TestServer> {
  found ??= await lookForServer();
  return found;
}

async function lookForServer(): Promise<TestServer> {
  const adminUrl = await serverUrl();
  return await asAdmin(adminUrl, async (admin) => ({
    adminUrl,
    template: await ensureTemplate(admin, adminUrl),
    socketFolder: await socketFolderOf(admin, adminUrl),
  }));
}

/**
 * The embedded PostgreSQL server of a test run does not wait for the disk, because test data need not survive a power cut. The PostgreSQL server of
 * the tests also listens on a Unix socket in its data folder.
 */
async function serverUrl(): Promise<string> {
  const given = process.env["MUSTER_TEST_DATABASE_URL"];
  if (given !== undefined && given !== "") return given;
  const stateDir = process.env[TEST_SERVER_FOLDER];
  if (stateDir === undefined)
    throw new Error("Run tests with --config test/config/vitest.config.ts: its set-up owns the server");
  const source = process.env["MUSTER_TEST_POSTGRES_SOURCE"];
  const started = await startEmbeddedPostgres({
    stateDir,
    log: quietLog,
    stopOnClose: false,
    source: source === "npm" || source === "system" ? source : undefined,
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", unix_socket_directories: "." },
  });
  await started.stop();
  return started.url;
}

/** Linux accepts no path of a Unix socket with more than 107 bytes. */
const LONGEST_SOCKET_PATH = 107;

/** Returns the folder of the server's Unix socket, or null if this process cannot use the Unix socket. */
async function socketFolderOf(admin: Client, adminUrl: string): Promise<string | null> {
  if (process.env[TEST_SERVER_FOLDER] === undefined || process.env["MUSTER_TEST_DATABASE_URL"]) return null;
  const { rows } = await admin.query<{ data_directory: string }>("show data_directory");
  const folder = rows[0]?.data_directory ?? "";
  const socket = join(folder, `.s.PGSQL.${new URL(adminUrl).port}`);
  return Buffer.byteLength(socket) <= LONGEST_SOCKET_PATH && existsSync(socket) ? folder : null;
}

/**
 * The name of the template database contains a hash of the migrations, because a long-lived server may have templates of other versions of the
 * migrations.
 */
async function ensureTemplate(admin: Client, adminUrl: string): Promise<string> {
  const template = `muster_template_${await fingerprint()}`;
  await admin.query("select pg_advisory_lock($1)", [TEMPLATE_LOCK]);
  try {
    const { rowCount } = await admin.query("select 1 from pg_database where datname = $1", [template]);
    if (rowCount !== 0) return template;
    const building = `${template}_building`;
    await admin.query(`drop database if exists ${building} with (force)`);
    await admin.query(`create database ${building}`);
    await migrate(urlOf(adminUrl, building));
    await whenUnused(() => admin.query(`alter database ${building} rename to ${template}`));
    return template;
  } finally {
    await admin.query("select pg_advisory_unlock($1)", [TEMPLATE_LOCK]);
  }
}

async function fingerprint(): Promise<string> {
  const hash = createHash("sha256");
  const files = await readdir(MIGRATIONS, { recursive: true, withFileTypes: true });
  for (const file of files
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()) {
    hash.update(file).update(await readFile(file));
  }
  return hash.digest("hex").slice(0, 12);
}

/** Repeats an SQL statement while PostgreSQL still sees a database session that has just ended. */
async function whenUnused<T>(statement: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    try {
      return await statement();
    } catch (error) {
      if (!(error instanceof DatabaseError && error.code === "55006") || Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

async function asAdmin<T>(url: string, fn: (admin: Client) => Promise<T>): Promise<T> {
  const admin = new Client({ connectionString: url, application_name: "muster-test-admin" });
  admin.on("error", () => undefined);
  await admin.connect();
  try {
    return await fn(admin);
  } finally {
    await admin.end();
  }
}

/** Returns the database's URL with the Unix socket in the given folder instead of the TCP address. */
function bySocket(databaseUrl: string, socketFolder: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("host", socketFolder);
  return url.href;
}

function urlOf(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}
