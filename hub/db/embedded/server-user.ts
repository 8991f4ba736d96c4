/**
 * PostgreSQL refuses to run as root. A hub that runs as root starts PostgreSQL as a user that runs nothing else, because every process of that user
 * controls the database.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../../shared/log.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { withLaunchLock } from "./launch-lock.ts";
import { run, type ServerUser } from "./run.ts";

/** The hub creates the user `muster-postgres` if it is missing and the operator named no other user. */
export const OWN_USER = "muster-postgres";

/** System users under which any service without a user of its own may run. */
const SHARED_NAMES = ["nobody", "daemon", "bin", "sys"];
const SHARED_UIDS = [65_534, 4_294_967_294];
/** The exit codes with which useradd says that another program is changing the list of users. */
const IS_BUSY = [1, 9, 10];
const MADE_WITHIN_MS = 15_000;
const OTHERWISE =
  "Set MUSTER_POSTGRES_USER to an existing user that runs nothing else, run the hub as an ordinary user, or set DATABASE_URL";

/** `root` is the root folder of the system whose users the hub reads; tests set another root folder. */
const SYSTEM = { root: "/", useradd: "/usr/sbin/useradd" };

export async function findServerUser(named: string | undefined, log: Log, system = SYSTEM): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return undefined;
  const name = named ?? OWN_USER;
  const user = (await lookUp(name, system.root)) ?? (named === undefined ? await makeUser(system, log) : undefined);
  if (user === undefined || user.uid === 0)
    throw new EmbeddedPostgresError(
      "unprivileged_user_missing",
      `PostgreSQL cannot run as root and there is no unprivileged user "${name}". ${OTHERWISE}`,
    );
  if (SHARED_NAMES.includes(user.name) || SHARED_UIDS.includes(user.uid))
    throw new EmbeddedPostgresError(
      "unprivileged_user_shared",
      `The embedded database cannot run as "${user.name}": every process of that user could read it, change it and so become the hub's administrator. Leave MUSTER_POSTGRES_USER unset, and the hub makes the user ${OWN_USER}. ${OTHERWISE}`,
    );
  return user;
}

const lookUp = async (name: string, root: string): Promise<ServerUser> =>
  parsePasswd(await readFile(join(root, "etc/passwd"), "utf8"), name);

/** Adds the server's user under a lock, because two hubs that start at once might both add the user. */
async function makeUser({ root, useradd }: typeof SYSTEM, log: Log): Promise<ServerUser> {
  return withLaunchLock(
    join(root, "run/muster-postgres.lock"),
    async () => (await lookUp(OWN_USER, root)) ?? (await add({ root, useradd }, log)),
  );
}

async function add({ root, useradd }: typeof SYSTEM, log: Log): Promise<ServerUser> {
  const home = ["--home-dir", "/nonexistent", "--no-create-home", "--shell", "/usr/sbin/nologin"];
  const words = ["--prefix", root, "--system", "--user-group", ...home, "--comment", "Muster's embedded database"];
  const deadline = Date.now() + MADE_WITHIN_MS;
  for (;;) {
    // The hub leaves out `--prefix` for the real system, because with `--prefix` useradd ignores the system's other sources of users.
    const made = await run(useradd, [...words.slice(root === "/" ? 2 : 0), OWN_USER], undefined);
    if (made.status === 0) log.info("made the user that runs the embedded database", { user: OWN_USER });
    const user = await lookUp(OWN_USER, root);
    if (user !== undefined) return user;
    if (!IS_BUSY.includes(made.status ?? 0) || Date.now() > deadline)
      throw new EmbeddedPostgresError(
        "unprivileged_user_missing",
        `PostgreSQL cannot run as root, and the user ${OWN_USER} could not be made (useradd: ${made.output.slice(-300)}). Make it as a system user of its own. ${OTHERWISE}`,
      );
    await sleep(100 + Math.random() * 200);
  }
}

export function parsePasswd(passwd: string, name: string): ServerUser {
  for (const line of passwd.split("\n")) {
    const [login, , uid, gid] = line.split(":");
    // macOS writes the ids of the user nobody as -2.
    if (login === name && uid && gid) return { name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 };
  }
  return undefined;
}
