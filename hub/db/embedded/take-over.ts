/**
 * Gives a database cluster that another user ran to the user that will run the database server. The former user of a database cluster could put
 * anything into the cluster's folder. The change of the owner affects only files that belonged to the former user, and follows no symbolic link.
 */
import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../../shared/log.ts";
import { EmbeddedPostgresError } from "./error.ts";
import type { ServerUser } from "./run.ts";

async function ownerOf(path: string): Promise<number | undefined> {
  try {
    return (await lstat(path)).uid;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** True if the data folder or its `PG_VERSION` belongs to another user than the user of the database server. */
export async function isAnothers(data: string, user: ServerUser): Promise<boolean> {
  if (user === undefined) return false;
  const owners = [await ownerOf(data), await ownerOf(join(data, "PG_VERSION"))];
  return owners.some((owner) => owner !== undefined && owner !== user.uid);
}

/**
 * Gives PostgreSQL's data folder to its new user; the caller holds the launch lock, and no server runs on the folder. The takeover of a data folder
 * first denies the former user access to the folder, and gives the new user access last. `PG_VERSION` keeps the former owner until the end, so that
 * an interrupted takeover can continue.
 */
export async function takeOver(data: string, user: ServerUser, log: Log): Promise<void> {
  if (user === undefined || !(await isAnothers(data, user))) return;
  const version = join(data, "PG_VERSION");
  const former = await ownerOf(version);
  if (former === undefined || former === 0)
    throw new EmbeddedPostgresError(
      "data_owner_unknown",
      `${data} belongs neither to ${user.name} nor to another unprivileged user, so the hub does not change it. If it is the hub's database, give it to that user: chown -R ${user.name}: ${data}`,
    );
  await lchown(data, 0, 0);
  await giveAll(data, former, user, version);
  await lchown(version, user.uid, user.gid);
  await lchown(data, user.uid, user.gid);
  log.warn(
    "the embedded database belonged to another user until now; every process of that user could read and change it",
    {
      folder: data,
      former_uid: former,
      user: user.name,
    },
  );
}

async function giveAll(folder: string, former: number, user: NonNullable<ServerUser>, but: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (path === but) continue;
    // A file of a third user, for example behind a hard link, keeps its owner when the data folder gets a new owner.
    if ((await ownerOf(path)) === former) await lchown(path, user.uid, user.gid);
    if (entry.isDirectory()) await giveAll(path, former, user, but);
  }
}
