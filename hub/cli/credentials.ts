import { closeSync, mkdirSync, openSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { UsageError } from "./errors.ts";

import type { Credentials, Login, ProviderLogin } from "./login-forms.ts";
import { privateText, writePrivate } from "./private-file.ts";

const EMPTY: Credentials = { version: 1, hubs: {} };

/** How long before its end an access token is renewed, so that the token does not end on its way to the hub. */
const EARLY_MS = 30_000;
export const isFresh = ({ expires_at }: ProviderLogin): boolean => Date.now() < expires_at - EARLY_MS;

export const credentialsFile = (env: Readonly<Record<string, string | undefined>>): string =>
  join(env["XDG_STATE_HOME"] || join(env["HOME"] || homedir(), ".local", "state"), "muster", "credentials.json");

/** Reads the logins of this user. Other users may already know the tokens in a file that they can read, so such a file is refused. */
async function readCredentials(file: string): Promise<Credentials> {
  const text = privateText(file, "Remove the file, have its tokens revoked, and log in again.");
  if (text === null) return EMPTY;
  // A user without logins does not need the schemas of the file of logins, which take longer to load than the rest of the program.
  const { Credentials } = await import("./login-forms.ts");
  try {
    return Credentials.parse(JSON.parse(text));
  } catch {
    throw new UsageError(`${file} is damaged. Remove the file and log in again.`);
  }
}

export const readLogin = async (file: string, hub: string): Promise<Login | null> =>
  (await readCredentials(file)).hubs[hub] ?? null;

/** Stores or removes the login at a hub, which the hub's address or the name of a context names. */
export async function writeLogin(file: string, hub: string, login: Login | null): Promise<void> {
  const { [hub]: _old, ...others } = (await readCredentials(file)).hubs;
  const next: Credentials = { version: 1, hubs: login === null ? others : { ...others, [hub]: login } };
  writePrivate(file, `${JSON.stringify(next, null, 1)}\n`);
}

const LOCK_LASTS_MS = 60_000;
const LOCK_LOOK_MS = 50;

/**
 * Runs `work` while no other command of this user changes the file of logins. A provider may accept each refresh token only once, so two commands
 * must not use one at the same time. If a command was killed, its lock on the file of logins ends after a minute.
 */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = `${file}.lock`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  while (!take(lock)) await pause(LOCK_LOOK_MS);
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function take(lock: string): boolean {
  try {
    closeSync(openSync(lock, "wx", 0o600));
    return true;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
  if (since !== undefined && Date.now() - since > LOCK_LASTS_MS) rmSync(lock, { force: true });
  return false;
}
