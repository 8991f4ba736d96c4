/**
 * The launch lock prevents two hubs that share a state folder from launching the database at once. If a hub wrongly takes over another hub's launch
 * lock, the database stays intact. A hub builds a new database cluster in a separate folder, and PostgreSQL itself protects an existing data folder
 * against a second server.
 */
import { randomUUID } from "node:crypto";
import { open, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { EmbeddedPostgresError } from "./error.ts";

/** If nobody touched the file of a launch lock for `STALE_AFTER_MS`, the lock's holder is dead, even if a living process has the holder's pid. */
const STALE_AFTER_MS = 30_000;
const TOUCH_EVERY_MS = 3_000;
const GIVE_UP_AFTER_MS = 300_000;

export async function withLaunchLock<T>(file: string, fn: () => Promise<T>): Promise<T> {
  const token = `${process.pid} ${randomUUID()}`;
  await acquire(file, token);
  const touch = setInterval(() => {
    const now = new Date();
    // If the holder of a launch lock cannot touch the lock's file, the lock becomes stale, as it should.
    utimes(file, now, now).catch(() => undefined);
  }, TOUCH_EVERY_MS);
  try {
    return await fn();
  } finally {
    clearInterval(touch);
    if ((await contentOf(file)) === token) await rm(file, { force: true });
  }
}

async function acquire(file: string, token: string): Promise<void> {
  const deadline = Date.now() + GIVE_UP_AFTER_MS;
  while (!(await tryCreate(file, token))) {
    if (await isStale(file)) await setAside(file);
    else if (Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        "launch_locked",
        `Another process (pid ${(await contentOf(file)).split(" ")[0]}) has been launching the embedded database for minutes; stop it or remove ${file}`,
      );
    } else await sleep(50 + Math.random() * 100);
  }
}

async function tryCreate(file: string, token: string): Promise<boolean> {
  try {
    const handle = await open(file, "wx", 0o600);
    await handle.writeFile(token).finally(() => handle.close());
    return true;
  } catch (error) {
    if (isCode(error, "EEXIST")) return false;
    throw error;
  }
}

async function isStale(file: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(file);
    if (Date.now() - mtimeMs > STALE_AFTER_MS) return true;
    const pid = Number((await contentOf(file)).split(" ")[0]);
    // An empty lock file is not stale, because the process that has just created the file has not yet written its pid.
    return Number.isInteger(pid) && pid > 0 && !isAlive(pid);
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Renames a stale lock file before the removal, so that only one of several processes removes the file. */
async function setAside(file: string): Promise<void> {
  const aside = `${file}.${randomUUID()}`;
  try {
    await rename(file, aside);
    await rm(aside, { force: true });
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isCode(error, "EPERM");
  }
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return "";
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
