/**
 * Creates the embedded PostgreSQL database, whose files are in the home folder `<home>`.
 *
 * `<home>/cluster/data` is PostgreSQL's data folder, owned by the server's user.
 * `<home>/cluster/password` holds the password of the database user `muster`, with mode 0600, owned by the hub's user.
 * `<home>/cluster/port` holds the database server's last port, so that the database's URL stays the same if possible.
 * `<home>/server.log` is the database server's log.
 * `<home>/binaries-<v>` is a copy of version `<v>` of the npm package with PostgreSQL, if a copy was needed.
 * `<home>/launch.lock` is the lock of a hub that launches the database.
 *
 * The hub builds the folder `cluster` under another name and renames the complete folder, so a crash during initdb leaves no incomplete cluster.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { chmod, chown, link, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import type { Log } from "../../../shared/log.ts";
import type { Binaries } from "./binaries.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { canEnter, run, type ServerUser } from "./run.ts";

/** The database role that owns the embedded database and is its only role. */
export const DATABASE_USER = "muster";

/**
 * The folder in which the hub creates the database's home folder if the server's user cannot enter the hub's state folder, e.g. a folder below /root.
 */
const SHARED_HOMES = "/var/lib/muster";

export type ClusterPaths = {
  home: string;
  cluster: string;
  data: string;
  password: string;
  port: string;
  log: string;
  lock: string;
};

/**
 * Finds or creates the home folder of the embedded database. If the database's home folder is outside the hub's state folder, the file
 * `<state>/postgres/home` names the home folder.
 */
export async function prepareHome(stateDir: string, user: ServerUser, log: Log): Promise<ClusterPaths> {
  const inState = join(stateDir, "postgres");
  await mkdir(inState, { recursive: true, mode: user === undefined ? 0o700 : 0o711 });
  if (user === undefined) return pathsIn(inState);
  if (await canEnter(inState, user)) return pathsIn(inState);
  if ((await readIfThere(pathsIn(inState).password)) !== undefined)
    throw new EmbeddedPostgresError(
      "home_unreadable",
      `The database is in ${inState}, and its user ${user.name} cannot enter that folder. Let that user pass through each folder of the path (chmod o+x), or set MUSTER_POSTGRES_USER to a user that can.`,
    );
  const pointer = join(inState, "home");
  const home = (await readIfThere(pointer)) ?? (await claimHome(pointer));
  // A relative path of the database's home would depend on where the hub was started.
  if (!isAbsolute(home))
    throw new EmbeddedPostgresError(
      "home_unreadable",
      `${pointer} must hold the path of the database's folder, such as ${SHARED_HOMES}/postgres-<id>, and holds ${JSON.stringify(home.slice(0, 200))}. Write the path back; if no hub has run with this state folder before, remove the file.`,
    );
  await mkdir(home, { recursive: true, mode: 0o711 });
  log.info("the database lies outside the state folder, which its user cannot enter", { home, user: user.name });
  return pathsIn(home);
}

function pathsIn(home: string): ClusterPaths {
  const cluster = join(home, "cluster");
  return {
    home,
    cluster,
    data: join(cluster, "data"),
    password: join(cluster, "password"),
    port: join(cluster, "port"),
    log: join(home, "server.log"),
    lock: join(home, "launch.lock"),
  };
}

/**
 * If two hubs start at once, both hubs use the home folder of the embedded database that the first hub wrote into the file `pointer`. The hub
 * publishes the file `pointer` by a hard link, so no hub ever reads a partial path.
 */
async function claimHome(pointer: string): Promise<string> {
  const home = join(SHARED_HOMES, `postgres-${randomUUID()}`);
  const draft = `${pointer}-${randomUUID()}`;
  await mkdir(SHARED_HOMES, { recursive: true, mode: 0o755 });
  await writeFile(draft, home, { flush: true });
  try {
    await link(draft, pointer);
    return home;
  } catch (error) {
    const first = await readIfThere(pointer);
    if (first === undefined) throw error;
    return first;
  } finally {
    await rm(draft);
  }
}

/** Creates the cluster of the embedded database if it is missing, while the caller holds the launch lock. */
export async function createCluster(
  paths: ClusterPaths,
  binaries: Binaries,
  user: ServerUser,
  log: Log,
): Promise<void> {
  if ((await readIfThere(paths.password)) !== undefined) return;
  await removeLeftovers(paths.home);
  const work = join(paths.home, `new-${randomUUID()}`);
  const data = join(work, "data");
  const passwordForInitdb = join(data, "..", "initdb", "password");
  const password = randomBytes(24).toString("base64url");
  await mkdir(work, { mode: user === undefined ? 0o700 : 0o711 });
  for (const folder of [data, dirname(passwordForInitdb)]) {
    await mkdir(folder, { mode: 0o700 });
    if (user !== undefined) await chown(folder, user.uid, user.gid);
  }
  await writeFile(join(work, "password"), password, { mode: 0o600 });
  await writeFile(passwordForInitdb, password, { mode: 0o600 });
  if (user !== undefined) await chown(passwordForInitdb, user.uid, user.gid);
  await initialise(data, passwordForInitdb, binaries, user);
  await rm(dirname(passwordForInitdb), { recursive: true });
  await chmod(work, user === undefined ? 0o700 : 0o711);
  await rename(work, paths.cluster);
  log.info("created the embedded database", { folder: paths.data, version: binaries.version, source: binaries.source });
}

async function initialise(data: string, passwordFile: string, binaries: Binaries, user: ServerUser): Promise<void> {
  const { status, output } = await run(
    join(binaries.binDir, "initdb"),
    ["-D", data, "-U", DATABASE_USER, "-A", "scram-sha-256", `--pwfile=${passwordFile}`, "--no-locale", "-E", "UTF8"],
    user,
  );
  if (status === 0) return;
  throw new EmbeddedPostgresError(
    "initialisation_failed",
    `initdb of PostgreSQL ${binaries.version} (${binaries.binDir}) failed: ${output.slice(-1500)}`,
  );
}

async function removeLeftovers(home: string): Promise<void> {
  const leftovers = (await readdir(home)).filter((entry) => entry.startsWith("new-"));
  await Promise.all(leftovers.map((entry) => rm(join(home, entry), { recursive: true, force: true })));
}

export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
