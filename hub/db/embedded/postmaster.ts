import { readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { join } from "node:path";

export type Postmaster = { pid: number; port: number };

/** `readPostmaster` returns undefined if no server has the data folder open, or if a starting server has not written its port yet. */
export async function readPostmaster(dataDir: string): Promise<Postmaster | undefined> {
  const lines = (await readOrEmpty(join(dataDir, "postmaster.pid"))).split("\n");
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  return pid > 0 && port > 0 ? { pid, port } : undefined;
}

/**
 * PostgreSQL trusts any living pid in its lock file `postmaster.pid`. After a container's restart, the pid in `postmaster.pid` may belong to another
 * process or to a zombie. Every server process has the data folder as its working folder, so on Linux /proc shows whether the pid is the server's.
 * `isServedHere` returns undefined on other systems than Linux, where PostgreSQL's own check decides.
 */
export async function isServedHere(dataDir: string): Promise<boolean | undefined> {
  if (process.platform !== "linux") return undefined;
  const folder = await realpath(dataDir);
  for (const entry of await readdir("/proc")) {
    if (/^\d+$/.test(entry) && (await workingFolder(entry)) === folder) return true;
  }
  return false;
}

/**
 * Removes the stale lock file `postmaster.pid` of a PostgreSQL server after `isServedHere` has found that no server uses the data folder. A killed
 * server leaves its `postmaster.pid`, and another process may now have the pid that the file names.
 */
export async function removeStaleLock(dataDir: string): Promise<void> {
  await rm(join(dataDir, "postmaster.pid"), { force: true });
}

async function workingFolder(pid: string): Promise<string | undefined> {
  try {
    return await readlink(join("/proc", pid, "cwd"));
  } catch {
    // A process that the hub cannot inspect has ended, is a zombie, or belongs to another user, and so is not the PostgreSQL server.
    return undefined;
  }
}

async function readOrEmpty(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
