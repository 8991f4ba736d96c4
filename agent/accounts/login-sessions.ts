import type { System } from "../system/system.ts";
import { isHuman } from "./human-uid.ts";
import { openTerminals } from "./terminals.ts";

const TOOL_TIMEOUT_MS = 15_000;

export interface LoginSession {
  /** The login manager's id of the session, or null for a terminal that the login manager does not list. */
  readonly id: string | null;
  readonly uid: number;
  readonly user: string;
}

/**
 * Parses the lines of `loginctl list-sessions --no-legend`: id, uid, user, and columns that differ between versions. `readSessions` leaves out the
 * sessions of system users. `readSessions` throws when `loginctl` fails, because a missing list does not prove that no user is logged in.
 */
export async function readSessions(system: System): Promise<LoginSession[]> {
  const ran = await system.run("loginctl", ["list-sessions", "--no-legend"], TOOL_TIMEOUT_MS);
  if (ran.exitCode !== 0) throw new Error(`loginctl ended with status ${ran.exitCode}: ${ran.stderr}`);
  return ran.stdout.split("\n").flatMap((line) => {
    const [id, uid, user] = line.trim().split(/\s+/);
    const number = Number(uid);
    return id && user && isHuman(number) ? [{ id, uid: number, user }] : [];
  });
}

/**
 * Returns the login sessions, and the terminals of users without a login session. An example is a terminal of the program `screen`, which stays open
 * after its user has logged out. Only a drain with `force` waits for terminals without a login session and ends their processes.
 */
export async function readAllSessions(system: System): Promise<LoginSession[]> {
  const listed = await readSessions(system);
  const isUnlisted = (uid: number): boolean => isHuman(uid) && !listed.some((session) => session.uid === uid);
  const terminals = await openTerminals(system, isUnlisted);
  return [...listed, ...terminals.map(({ uid, user }) => ({ id: null, uid, user }))];
}

export async function endSession(system: System, id: string): Promise<void> {
  await system.run("loginctl", ["terminate-session", id], TOOL_TIMEOUT_MS);
}

export const usersOf = (sessions: readonly LoginSession[]): string[] =>
  [...new Set(sessions.map((session) => session.user))].sort();
