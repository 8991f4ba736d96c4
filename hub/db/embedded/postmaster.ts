/** What the running server says of itself in `postmaster.pid`, and whether that file is still true. */
import { readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { join } from "node:path";

export type Postmaster = { pid: number; port: number };

/** Undefined when no server has the folder open (or it is too early in its start to have written its port). */
export async function readPostmaster(dataDir: string): Promise<Postmaster | undefined> {
  const lines = (await readOrEmpty(join(dataDir, "postmaster.pid"))).split("\n");
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  return pid > 0 && port > 0 ? { pid, port } : undefined;
}

/**
 * The server trusts a pid in its lock file that is alive, though after a restart of a container it may be any process,
 * or a zombie where nobody reaps. Every server process works in its data folder, so on Linux the truth is in /proc.
 * Returns undefined where that cannot be told (other systems): then the server's own judgement stands.
 */
export async function isServedHere(dataDir: string): Promise<boolean | undefined> {
  if (process.platform !== "linux") return undefined;
  const folder = await realpath(dataDir);
  for (const entry of await readdir("/proc")) {
    if (/^\d+$/.test(entry) && (await workingFolder(entry)) === folder) return true;
  }
  return false;
}

/** Only after `isServedHere` said false: a kill -9 of the server left the file, and its pid may be in use again. */
export async function removeStaleLock(dataDir: string): Promise<void> {
  await rm(join(dataDir, "postmaster.pid"), { force: true });
}

async function workingFolder(pid: string): Promise<string | undefined> {
  try {
    return await readlink(join("/proc", pid, "cwd"));
  } catch {
    return undefined; // Ended meanwhile, a zombie, or another user's: the server runs as our user or below root.
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
