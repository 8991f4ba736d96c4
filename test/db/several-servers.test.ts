import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../hub/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { listen } from "../../hub/db/listen.ts";
import { migrate } from "../../hub/db/migrate.ts";
import { sql } from "../../hub/db/orm.ts";
import { startDatabase } from "../../hub/startup/start-database.ts";
import { Secret } from "../../shared/secret.ts";
import { freeHubPorts, startHubProcess } from "../support/hub-process.ts";
import { quietLog } from "../support/log.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { until } from "../support/until.ts";

const folders: string[] = [];
let servers: EmbeddedPostgres[];
/** The URLs of the two servers, with one user and password, and the URL that names both. */
let first: string;
let second: string;
let both: string;

async function start(): Promise<EmbeddedPostgres> {
  const stateDir = await mkdtemp(join(memoryFolder(), "muster servers "));
  await chmod(stateDir, 0o711);
  folders.push(stateDir);
  return startEmbeddedPostgres({ log: quietLog, stateDir });
}

async function ask(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

const firstGone = (): string => both.replace(/@[^,]*/, "@127.0.0.1:1");

/** Makes a server refuse writes, as a standby server does, and ends its connections, as a switch-over does; or makes it take writes again. */
const setReadOnly = (url: string, isReadOnly: boolean): Promise<void> =>
  ask(
    url,
    "set default_transaction_read_only = off",
    `alter system set default_transaction_read_only = ${isReadOnly ? "on" : "off"}`,
    "select pg_reload_conf()",
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = current_user",
  );

beforeAll(async () => {
  servers = await Promise.all([start(), start()]);
  const [a, b] = servers.map(({ url }) => new URL(url)) as [URL, URL];
  await ask(b.href, `alter user ${b.username} password '${a.password}'`);
  b.password = a.password;
  [first, second] = [a.href, b.href];
  both = `postgres://${a.username}:${a.password}@${a.host},${b.host}${a.pathname}`;
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

describe("a database of several servers", () => {
  it("starts a hub whose first server takes no writes, and starts the hub again when the first server is gone", async () => {
    await setReadOnly(first, true);
    const folder = await mkdtemp(join(memoryFolder(), "muster several "));
    folders.push(folder);
    const ports = await freeHubPorts();
    for (const databaseUrl of [both, firstGone()]) {
      const hub = startHubProcess({ databaseUrl, stateDir: folder, ports, logFile: join(folder, "hub.log") });
      try {
        await hub.ready;
        expect((await fetch(`http://127.0.0.1:${ports.http}/readyz`)).status).toBe(200);
      } finally {
        await hub.stop();
      }
    }
  });

  it.each([
    ["is gone", () => firstGone()],
    ["takes no writes", () => both],
  ])("is used by the first statement of a pool whose first server %s", async (_, url) => {
    await setReadOnly(first, true);
    const database = openDatabase({ url: url(), poolSize: 2, applicationName: "several", log: quietLog });
    try {
      await expect(database.pool.query("show port")).resolves.toMatchObject({ rows: [{ port: new URL(second).port }] });
      await expect(database.inTx((tx) => tx.execute(sql`select 1`))).resolves.toMatchObject({ rowCount: 1 });
    } finally {
      await database.close();
    }
  });

  it("is migrated and used on the one that takes writes, and followed when another one does", async () => {
    await setReadOnly(first, true);
    await migrate(both);
    const database = openDatabase({ url: both, poolSize: 3, applicationName: "several", log: quietLog });
    const heard: string[] = [];
    const listener = listen({
      url: both,
      applicationName: "several",
      channels: ["moved"],
      log: quietLog,
      onNotify: (_, payload) => void heard.push(payload),
      onReconnect: () => undefined,
    });
    const portOf = async ({ pool }: Database) => {
      const { rows } = await pool.query<{ port: string }>("select current_setting('port') as port");
      return rows[0]?.port;
    };
    const isAt = (url: string) =>
      until("the server that takes writes", async () =>
        (await portOf(database).catch(() => null)) === new URL(url).port ? true : undefined,
      );
    const isHeardFrom = (url: string, payload: string) =>
      until("the notification", async () => {
        await ask(url, `select pg_notify('moved', '${payload}')`);
        return heard.includes(payload) ? true : undefined;
      });
    try {
      await isAt(second);
      await isHeardFrom(second, "from the second");
      await setReadOnly(first, false);
      await setReadOnly(second, true);
      await migrate(both);
      await isAt(first);
      await isHeardFrom(first, "from the first");
      await setReadOnly(second, false);
      await servers[0]?.stop();
      await isAt(second);
      await isHeardFrom(second, "after the end of the first");
    } finally {
      await listener.close();
      await database.close();
    }
  });

  it("is refused with the first server's error if no server can be used", async () => {
    const none = both.replace(/@.*\//, "@127.0.0.1:1,127.0.0.1:2/");
    const settings = { databaseUrl: new Secret(none), embedded: { binDir: null, runAs: null }, databasePoolSize: 1 };
    const started = startDatabase({ ...settings, stateDir: "/nonexistent" }, "several", quietLog, []);
    const fault = await started.then(String, (error: Error) => error.message);
    expect(fault).toMatch(/^The database 127.0.0.1:1,127.0.0.1:2\/\S+ of DATABASE_URL cannot be used: .*Check that/);
    expect(fault).not.toContain(new URL(first).password);
    await setReadOnly(second, true);
    await expect(migrate(firstGone())).rejects.toMatchObject({ code: "ECONNREFUSED" });
    const swapped = new URL(second);
    await expect(migrate(`${second.replace(swapped.host, `${swapped.host},127.0.0.1:1`)}`)).rejects.toMatchObject({
      code: "25006",
    });
  });
});
