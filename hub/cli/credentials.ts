import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { UsageError } from "./arguments.ts";

const Text = z.string().min(1).max(65_536);
const Login = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("token"), token: Text }),
  z.strictObject({
    kind: z.literal("provider"),
    issuer: z.url(),
    client_id: Text,
    resource: z.string().nullable(),
    access_token: Text,
    /** The end of the access token's life in milliseconds since 1970, by the clock of this machine. */
    expires_at: z.number(),
    refresh_token: Text.nullable(),
  }),
]);
export type Login = z.output<typeof Login>;
export type ProviderLogin = Extract<Login, { kind: "provider" }>;
const Credentials = z.strictObject({ version: z.literal(1), hubs: z.record(z.string(), Login) });
type Credentials = z.output<typeof Credentials>;
const EMPTY: Credentials = { version: 1, hubs: {} };

/** An access token is renewed this long before its end, so that it does not end on its way to the hub. */
const EARLY_MS = 30_000;
export const isFresh = ({ expires_at }: ProviderLogin): boolean => Date.now() < expires_at - EARLY_MS;

/** The bits of a file's mode by which its group and others may use the file. */
const FOR_OTHERS = 0o077;

export const credentialsFile = (env: Readonly<Record<string, string | undefined>>): string =>
  join(env["XDG_STATE_HOME"] || join(env["HOME"] || homedir(), ".local", "state"), "muster", "credentials.json");

/** Reads the logins of this user. `readCredentials` refuses a file that other users can read, because they may already know the tokens in it. */
function readCredentials(file: string): Credentials {
  let mode: number;
  let text: string;
  try {
    mode = statSync(file).mode;
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return EMPTY;
    throw new UsageError(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if ((mode & FOR_OTHERS) !== 0)
    throw new UsageError(
      `Other users of this machine may read or change ${file}, so the command does not use it. Remove the file, have its tokens revoked, and log in again.`,
    );
  try {
    return Credentials.parse(JSON.parse(text));
  } catch {
    throw new UsageError(`${file} is damaged. Remove the file and log in again.`);
  }
}

export const readLogin = (file: string, hub: string): Login | null => readCredentials(file).hubs[hub] ?? null;

/** Stores or removes the login at a hub. A reader sees either the old or the new file. */
export function writeLogin(file: string, hub: string, login: Login | null): void {
  const { [hub]: _old, ...others } = readCredentials(file).hubs;
  const next: Credentials = { version: 1, hubs: login === null ? others : { ...others, [hub]: login } };
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${JSON.stringify(next, null, 1)}\n`, { mode: 0o600, flag: "wx" });
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}

const LOCK_LASTS_MS = 60_000;
const LOCK_LOOK_MS = 50;

/**
 * Runs the work while no other command of this user changes the logins. A provider may accept each refresh token only once, so two commands must not
 * use one at the same time. The lock of a command that was killed ends after a minute.
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
