/** PostgreSQL refuses to run as root, so a root hub runs it as an existing unprivileged user (no user is created). */
import { readFile } from "node:fs/promises";
import { EmbeddedPostgresError } from "./error.ts";

/** The user to drop to; undefined when this process is not root and runs the server as itself. */
export type ServerUser = { name: string; uid: number; gid: number } | undefined;

export async function findServerUser(name = "nobody"): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return undefined;
  const user = parsePasswd(await readFile("/etc/passwd", "utf8"), name);
  if (user === undefined || user.uid === 0) {
    throw new EmbeddedPostgresError(
      "unprivileged_user_missing",
      `PostgreSQL cannot run as root and there is no unprivileged user "${name}"; name another one or run the hub as an ordinary user`,
    );
  }
  return user;
}

export function parsePasswd(passwd: string, name: string): ServerUser {
  for (const line of passwd.split("\n")) {
    const [login, , uid, gid] = line.split(":");
    // macOS writes nobody's ids as -2.
    if (login === name && uid && gid) return { name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 };
  }
  return undefined;
}
