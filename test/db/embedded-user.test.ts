import { type ChildProcess, spawn } from "node:child_process";
import {
  chmod,
  chown,
  lchown,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findBinaries } from "../../hub/db/embedded/binaries.ts";
import type { EmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { readPostmaster } from "../../hub/db/embedded/postmaster.ts";
import type { ServerUser } from "../../hub/db/embedded/run.ts";
import { findServerUser, OWN_USER, parsePasswd } from "../../hub/db/embedded/server-user.ts";
import { freePort } from "../support/free-port.ts";
import { quietLog } from "../support/log.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { until } from "../support/until.ts";

const USERADD = "/usr/sbin/useradd";
const folders: string[] = [];
const newFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(memoryFolder(), "muster-user-"));
  await chmod(folder, 0o711);
  folders.push(folder);
  return folder;
};
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

describe.runIf(process.getuid?.() === 0)("the user of a root hub's database", () => {
  async function system(passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n") {
    const root = await newFolder();
    for (const name of ["etc", "run"]) await mkdir(join(root, name));
    await writeFile(join(root, "etc/passwd"), passwd);
    for (const name of ["group", "shadow", "gshadow"]) await writeFile(join(root, "etc", name), "");
    return { root, useradd: USERADD };
  }

  it("is created once when it is missing, also by concurrent hubs, and cannot log in", async () => {
    const made = await system();
    const found = await Promise.all(Array.from({ length: 4 }, () => findServerUser(undefined, quietLog, made)));
    expect(new Set(found.map((user) => user?.uid)).size).toBe(1);
    expect(found[0]).toMatchObject({ name: OWN_USER, uid: expect.toSatisfy((uid) => uid > 0 && uid < 1000) });
    const lines = (await readFile(join(made.root, "etc/passwd"), "utf8")).split("\n");
    expect(lines.filter((line) => line.startsWith(`${OWN_USER}:`))).toEqual([expect.stringMatching(/nologin$/)]);
    expect(await readFile(join(made.root, "etc/shadow"), "utf8")).toMatch(/^muster-postgres:!/m);
  });

  it("is requested with its alternatives when it cannot be created", async () => {
    const made = { ...(await system()), useradd: "/none/useradd" };
    await expect(findServerUser(undefined, quietLog, made)).rejects.toMatchObject({
      code: "unprivileged_user_missing",
      message: expect.stringMatching(/could not be made .*MUSTER_POSTGRES_USER.*ordinary user.*DATABASE_URL/s),
    });
  });

  it.each([
    ["nobody", "unprivileged_user_shared"],
    ["www-nobody", "unprivileged_user_shared"],
    ["daemon", "unprivileged_user_shared"],
    ["root", "unprivileged_user_missing"],
    ["toor", "unprivileged_user_missing"],
    ["missing", "unprivileged_user_missing"],
  ])("is not %s", async (name, code) => {
    const users = "root:x:0:0:::\ntoor:x:0:0:::\nnobody:x:99:99:::\nwww-nobody:x:65534:1:::\ndaemon:x:1:1:::\n";
    await expect(findServerUser(name, quietLog, await system(users))).rejects.toMatchObject({ code });
  });
});

describe.runIf(process.getuid?.() === 0)("a cluster that the user nobody ran", () => {
  let stateDir: string;
  let data: string;
  let nobody: NonNullable<ServerUser>;
  let own: ServerUser;
  const servers: EmbeddedPostgres[] = [];
  const start = async () => {
    const server = await startEmbeddedPostgres({ log: quietLog, stateDir });
    servers.push(server);
    return server;
  };
  const serverUid = async () => (await stat(`/proc/${(await readPostmaster(data))?.pid}`)).uid;

  beforeAll(async () => {
    nobody = parsePasswd(await readFile("/etc/passwd", "utf8"), "nobody") ?? expect.fail("there is no nobody");
    own = await findServerUser(undefined, quietLog);
    stateDir = await newFolder();
    data = join(stateDir, "postgres/cluster/data");
    const first = await start();
    expect(await serverUid()).toBe(own?.uid);
    const client = new Client({ connectionString: first.url });
    await client.connect();
    await client.query("create table kept ()");
    await client.end();
    await first.stop();
  });
  /**
   * When the embedded database starts, it ends the PostgreSQL server that the user `nobody` runs on the same data. If the embedded database does not
   * start, `afterEach` ends the PostgreSQL server of the user `nobody`.
   */
  let others: ChildProcess | undefined;
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
    others?.kill("SIGINT");
    others = undefined;
  });

  async function giveToNobody(): Promise<void> {
    for (const entry of await readdir(data, { recursive: true, withFileTypes: true }))
      await lchown(join(entry.parentPath, entry.name), nobody.uid, nobody.gid);
    await chown(data, nobody.uid, nobody.gid);
  }

  async function kept(url: string): Promise<unknown> {
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query("select count(*)::int as count from kept");
    await client.end();
    return rows;
  }

  it("is taken over with its content, except for files of other owners", async () => {
    await giveToNobody();
    const others = join(stateDir, "others");
    await writeFile(others, "root's");
    await link(others, join(data, "hard"));
    await symlink("/etc", join(data, "soft"));
    const server = await start();
    expect(await kept(server.url)).toEqual([{ count: 0 }]);
    expect(await serverUid()).toBe(own?.uid);
    const entries = await readdir(data, { recursive: true, withFileTypes: true });
    for (const { parentPath, name } of entries.filter((entry) => entry.name !== "hard" && entry.name !== "soft"))
      expect((await stat(join(parentPath, name))).uid, name).toBe(own?.uid);
    expect((await stat(others)).uid).toBe(0);
    expect((await stat("/etc")).uid).toBe(0);
    await Promise.all(["hard", "soft"].map((name) => rm(join(data, name))));
  });

  it("is taken over by the next start when the first takeover was killed", async () => {
    await giveToNobody();
    await chown(data, 0, 0);
    await chown(join(data, "base"), own?.uid ?? 0, own?.gid ?? 0);
    expect(await kept((await start()).url)).toEqual([{ count: 0 }]);
    expect((await stat(join(data, "PG_VERSION"))).uid).toBe(own?.uid);
  });

  it("is refused when root owns its files, because the earlier owner is unknown", async () => {
    await chown(join(data, "PG_VERSION"), 0, 0);
    await expect(start()).rejects.toMatchObject({ code: "data_owner_unknown" });
    await chown(join(data, "PG_VERSION"), own?.uid ?? 0, own?.gid ?? 0);
  });

  it("is not adopted while its server runs as nobody, but restarted once no other hub uses it", async () => {
    await giveToNobody();
    const home = join(stateDir, "postgres");
    const { binDir } = await findBinaries({ home, dataDir: data, user: nobody, log: quietLog });
    const port = await freePort();
    const settings = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories="];
    const words = ["-D", data, ...settings.flatMap((one) => ["-c", one])];
    const as = { uid: nobody.uid, gid: nobody.gid, cwd: "/" };
    others = spawn(join(binDir, "postgres"), words, { ...as, stdio: "ignore" });
    const password = await readFile(join(home, "cluster/password"), "utf8");
    const other = await until("the old server answers", async () => {
      const client = new Client({ host: "127.0.0.1", port, user: "muster", password, database: "postgres" });
      client.on("error", () => undefined);
      return client.connect().then(
        () => client,
        () => undefined,
      );
    });
    await other.query("set application_name to 'muster-launcher'");
    await expect(start()).rejects.toMatchObject({ code: "data_in_use" });
    await other.end();
    const server = await start();
    expect(server.adopted).toBe(false);
    expect(await kept(server.url)).toEqual([{ count: 0 }]);
    expect(await serverUid()).toBe(own?.uid);
  });
});

describe.runIf(process.getuid?.() === 0)("a database that its user can no longer reach", () => {
  it("is not replaced by an empty one", async () => {
    const stateDir = await newFolder();
    const server = await startEmbeddedPostgres({ log: quietLog, stateDir });
    await server.stop();
    await chmod(stateDir, 0o700);
    await expect(startEmbeddedPostgres({ log: quietLog, stateDir })).rejects.toMatchObject({ code: "home_unreadable" });
    expect(await readdir(join(stateDir, "postgres"))).not.toContain("home");
  });
});
