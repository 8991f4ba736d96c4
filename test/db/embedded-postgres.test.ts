import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { findBinaries } from "../../hub/db/embedded/binaries.ts";
import type { EmbeddedPostgres, EmbeddedPostgresOptions } from "../../hub/db/embedded/embedded-postgres.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { findPackage } from "../../hub/db/embedded/npm-binaries.ts";
import { readPostmaster } from "../../hub/db/embedded/postmaster.ts";
import { canEnter } from "../../hub/db/embedded/run.ts";
import { findServerUser, parsePasswd } from "../../hub/db/embedded/server-user.ts";
import { createLog } from "../../shared/log.ts";
import { quietLog } from "../support/log.ts";
import { memoryFolder } from "../support/memory-folder.ts";

const HUB = fileURLToPath(new URL("../support/database-hub.ts", import.meta.url));
const Started = z.object({ url: z.string(), adopted: z.boolean(), version: z.string() });
/** The user `nobody` of the operating system, or undefined if the tests do not run as root. */
const nobody = process.getuid?.() === 0 ? parsePasswd(await readFile("/etc/passwd", "utf8"), "nobody") : undefined;

/**
 * True if the user that runs PostgreSQL in the test can enter the folder of the program `database-hub.ts`. The user `nobody` cannot enter `/root`.
 */
const runnableByNobody = await canEnter(dirname(HUB), nobody);

const folders: string[] = [];
const servers: EmbeddedPostgres[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

async function newStateDir(): Promise<string> {
  const folder = await mkdtemp(join(memoryFolder(), "muster embedded "));
  await chmod(folder, 0o711);
  folders.push(folder);
  return folder;
}

async function start(options: Partial<EmbeddedPostgresOptions> & { stateDir: string }): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ log: quietLog, ...options });
  servers.push(server);
  return server;
}

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows.flatMap((row) => Object.values(row));
  } finally {
    await client.end();
  }
}

async function spawnHub(options: { stateDir: string; source?: "system" | "npm" }) {
  const child = spawn(process.execPath, [HUB, JSON.stringify(options)], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value);
  const started = Started.parse(JSON.parse(await nextLine()));
  const acknowledged: number[] = [];
  while (acknowledged.length < 100) acknowledged.push(Number(await nextLine()));
  return {
    started,
    acknowledged,
    kill: async (signal: NodeJS.Signals) => {
      const exit = once(child, "exit");
      child.kill(signal);
      for (let line = await lines.next(); !line.done; line = await lines.next()) acknowledged.push(Number(line.value));
      return (await exit)[0] as number | null;
    },
  };
}

function dataOf(stateDir: string): string {
  return join(stateDir, "postgres", "cluster", "data");
}

async function hasSystemPostgres(): Promise<boolean> {
  const user = await findServerUser(undefined, quietLog);
  return await findBinaries({
    home: tmpdir(),
    dataDir: join(tmpdir(), "none"),
    user,
    log: quietLog,
    source: "system",
  }).then(
    () => true,
    () => false,
  );
}

const sources = (await hasSystemPostgres()) ? (["system", "npm"] as const) : (["npm"] as const);

describe.each(sources)("with the %s programs", (source) => {
  it("starts durable, refuses a wrong password, and stops cleanly", async () => {
    const stateDir = await newStateDir();
    const server = await start({ stateDir, source });
    expect(server.adopted).toBe(false);
    expect(await ask(server.url, "show fsync")).toEqual(["on"]);
    expect(await ask(server.url, "show listen_addresses")).toEqual(["127.0.0.1"]);
    expect(await ask(server.url, "show server_encoding")).toEqual(["UTF8"]);
    const wrong = new URL(server.url);
    wrong.password = "guess";
    await expect(ask(wrong.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
    await server.stop();
    expect(await readPostmaster(dataOf(stateDir))).toBeUndefined();
    const again = await start({ stateDir, source });
    expect(again).toMatchObject({ adopted: false, url: server.url });
    // The PostgreSQL log must show a first start with a new cluster, and a second start after a clean shutdown.
    const told = await readFile(join(stateDir, "postgres", "server.log"), "utf8");
    expect(told.match(/database system was .*/g)?.map((line) => line.split(" at ")[0])).toEqual([
      "database system was shut down",
      "database system was shut down",
    ]);
  });

  it("is adopted after its first hub was killed, and stopped by the adopting hub", async () => {
    const stateDir = await newStateDir();
    const hub = await spawnHub({ stateDir, source });
    await hub.kill("SIGKILL");
    const server = await start({ stateDir, source });
    expect(server).toMatchObject({ adopted: true, url: hub.started.url });
    expect(await ask(server.url, "select count(*)::int from acknowledged")).toSatisfy(
      ([count]) => Number(count) >= hub.acknowledged.length,
    );
    await server.stop();
    expect(await readPostmaster(dataOf(stateDir))).toBeUndefined();
  });

  it("loses no acknowledged commit when hub and server are killed together", async () => {
    const stateDir = await newStateDir();
    const hub = await spawnHub({ stateDir, source });
    const postmaster = await readPostmaster(dataOf(stateDir));
    process.kill(postmaster?.pid ?? 0, "SIGKILL");
    await hub.kill("SIGKILL");
    const server = await start({ stateDir, source });
    expect(server.adopted).toBe(false);
    const stored = new Set((await ask(server.url, "select number::int from acknowledged")).map(Number));
    expect(hub.acknowledged.filter((number) => !stored.has(number))).toEqual([]);
  });
});

describe("the launcher", () => {
  it("makes one database for hubs that start at once, and stops it with the last of them", async () => {
    const stateDir = await newStateDir();
    const started = await Promise.all([start({ stateDir }), start({ stateDir }), start({ stateDir })]);
    expect(new Set(started.map(({ url }) => url)).size).toBe(1);
    expect(started.filter(({ adopted }) => !adopted)).toHaveLength(1);
    const [first, second, third] = started;
    await first?.stop();
    await second?.stop();
    expect(await ask(third?.url ?? "", "select 1")).toEqual([1]);
    await third?.stop();
    expect(await readPostmaster(dataOf(stateDir))).toBeUndefined();
  });

  it("starts in spite of a dead process's lock file, a stale server lock and a half-made cluster", async () => {
    const stateDir = await newStateDir();
    const home = join(stateDir, "postgres");
    await mkdir(join(home, "new-half", "data"), { recursive: true });
    await chmod(home, 0o711);
    await writeFile(join(home, "launch.lock"), "999999999 x");
    const first = await start({ stateDir });
    expect((await readdir(home)).filter((entry) => entry.startsWith("new-"))).toEqual([]);
    await first.stop();
    // The pid in `postmaster.pid` belongs to a live process that is not PostgreSQL, as can happen after a container's restart.
    const stale = join(dataOf(stateDir), "postmaster.pid");
    await writeFile(stale, `${process.pid}\n${dataOf(stateDir)}\n0\n1\n\n127.0.0.1\n\nready\n`);
    const { uid, gid } = await stat(dataOf(stateDir));
    await chown(stale, uid, gid);
    expect(await start({ stateDir })).toMatchObject({ adopted: false });
  });

  it("writes its password to one file that only its owner can read, and to no log", async () => {
    const stateDir = await newStateDir();
    const lines: string[] = [];
    const server = await start({ stateDir, log: createLog("debug", (line) => lines.push(line)) });
    const file = join(stateDir, "postgres", "cluster", "password");
    const password = await readFile(file, "utf8");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(new URL(server.url).password).toBe(password);
    await expect(ask(server.url, "select 1/0")).rejects.toThrow();
    const postmaster = await readPostmaster(dataOf(stateDir));
    expect(lines.join("\n")).not.toContain(password);
    expect(await readFile(join(stateDir, "postgres", "server.log"), "utf8")).not.toContain(password);
    if (process.platform === "linux") {
      expect(await readFile(`/proc/${postmaster?.pid}/cmdline`, "utf8")).not.toContain(password);
      expect(await readFile(`/proc/${postmaster?.pid}/environ`, "utf8").catch(() => "")).not.toContain(password);
    }
    expect((await readdir(join(stateDir, "postgres", "cluster"))).sort()).toEqual(["data", "password", "port"]);
  });

  it("refuses data of another PostgreSQL version, and names the version", async () => {
    const stateDir = await newStateDir();
    await (await start({ stateDir, source: "npm" })).stop();
    await writeFile(join(dataOf(stateDir), "PG_VERSION"), "14\n");
    await expect(start({ stateDir })).rejects.toMatchObject({
      code: "data_version_mismatch",
      message: /PostgreSQL 14/,
    });
  });

  it.runIf(sources.length === 2)(
    "opens existing data with the programs that made it, not with the preferred ones",
    async () => {
      const stateDir = await newStateDir();
      const made = await start({ stateDir, source: "npm" });
      await made.stop();
      expect((await start({ stateDir })).version).toBe(made.version);
    },
  );

  it("refuses a folder without the PostgreSQL programs", async () => {
    const stateDir = await newStateDir();
    await expect(start({ stateDir, binDir: tmpdir() })).rejects.toMatchObject({ code: "binaries_missing" });
  });

  it("runs from an npm package that was installed without its install scripts", async () => {
    const stateDir = await newStateDir();
    const packageDir = await copyPackageWithoutLinks();
    const server = await start({ stateDir, source: "npm", packageDir });
    expect(await ask(server.url, "select 1")).toEqual([1]);
    expect(await readdir(join(stateDir, "postgres"))).toContainEqual(expect.stringMatching(/^binaries-\d/));
  });
});

/** Copies the npm package of PostgreSQL into a folder that only the user of the test process can enter, like root's npx cache. */
async function copyPackageWithoutLinks(): Promise<string> {
  const folder = await mkdtemp(join(memoryFolder(), "muster package "));
  folders.push(folder);
  const copy = join(folder, "package");
  await cp(findPackage() ?? "", copy, { recursive: true, verbatimSymlinks: true });
  const links = z.array(z.object({ target: z.string() }));
  for (const { target } of links.parse(JSON.parse(await readFile(join(copy, "native", "pg-symlinks.json"), "utf8")))) {
    await rm(join(copy, target), { force: true });
  }
  return copy;
}

describe.runIf(nobody !== undefined)("a root hub", () => {
  it("keeps the database in another folder, and finds it again, when the database's user cannot enter the state folder", async () => {
    const stateDir = await newStateDir();
    await chmod(stateDir, 0o700);
    const first = await start({ stateDir });
    const home = await readFile(join(stateDir, "postgres", "home"), "utf8");
    folders.push(home);
    await ask(first.url, "create table kept ()");
    await first.stop();
    const second = await start({ stateDir });
    expect(await ask(second.url, "select count(*)::int from kept")).toEqual([0]);
    expect(dirname(home)).toBe("/var/lib/muster");
    expect(await readdir(join(stateDir, "postgres"))).toEqual(["home"]);
  });

  it("uses the same folder as hubs that start at the same time", async () => {
    const stateDir = await newStateDir();
    await chmod(stateDir, 0o700);
    const hubs = await Promise.all(Array.from({ length: 3 }, () => start({ stateDir })));
    folders.push(await readFile(join(stateDir, "postgres", "home"), "utf8"));
    expect(new Set(hubs.map((hub) => hub.url)).size).toBe(1);
  });

  it("starts no new database when the file with the folder's path is damaged", async () => {
    const stateDir = await newStateDir();
    await chmod(stateDir, 0o700);
    const pointer = join(stateDir, "postgres", "home");
    await mkdir(dirname(pointer));
    for (const damaged of ["", "postgres-1"]) {
      await writeFile(pointer, damaged);
      await expect(start({ stateDir })).rejects.toMatchObject({
        code: "home_unreadable",
        message: expect.stringContaining(pointer),
      });
    }
    expect(await readdir(dirname(pointer))).toEqual(["home"]);
  });

  it.runIf(runnableByNobody)("is not required: an ordinary user's hub runs the database too", async () => {
    const stateDir = await newStateDir();
    await chown(stateDir, nobody?.uid ?? 0, nobody?.gid ?? 0);
    const child = spawn(process.execPath, [HUB, JSON.stringify({ stateDir })], {
      ...(nobody && { uid: nobody.uid, gid: nobody.gid }),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const started = Started.parse(JSON.parse(String((await lines.next()).value)));
    expect(await ask(started.url, "select 1")).toEqual([1]);
    const exit = once(child, "exit");
    child.kill("SIGTERM");
    for (let line = await lines.next(); !line.done; line = await lines.next());
    expect((await exit)[0]).toBe(0);
    expect(await readPostmaster(dataOf(stateDir))).toBeUndefined();
  });
});
