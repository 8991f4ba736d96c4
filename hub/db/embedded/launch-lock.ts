/**
 * The launch lock prevents two hubs that share a state folder from launching the database at once. A launch lock that is wrongly taken over does no
 * harm. A new cluster is built in a separate folder, and PostgreSQL protects its data folder itself.
 */
import { randomUUID } from "node:crypto";
import { open, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { EmbeddedPostgresError } from "./error.ts";

/**
 * The holder of a launch lock touches its file far more often than every `STALE_AFTER_MS`. A launch lock whose file was not touched for
 * `STALE_AFTER_MS` was left by a dead process, even if its pid is in use again.
 */
const STALE_AFTER_MS = 30_000;
const TOUCH_EVERY_MS = 3_000;
const GIVE_UP_AFTER_MS = 300_000;

export async function withLaunchLock<T>(file: string, fn: () => Promise<T>): Promise<T> {
  const token = `${process.pid} ${randomUUID()}`;
  await acquire(file, token);
  const touch = setInterval(() => {
    const now = new Date();
    // If the holder cannot touch the launch lock's file, the lock correctly becomes stale.
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
    // An empty lock file was just created, and its owner has not written the content yet.
    return Number.isInteger(pid) && pid > 0 && !isAlive(pid);
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Renames a stale lock file before removing it, so that only one of several processes removes it. */
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
