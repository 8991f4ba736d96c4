import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { TaskHandlers, TaskInput, TaskReply } from "../../shared/tasks/index.ts";
import { END_TIMING, endProcesses } from "../accounts/end-processes.ts";
import { isHuman } from "../accounts/human-uid.ts";
import { holdsTerminalOf, openTerminals } from "../accounts/terminals.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { isCancelledByHub } from "./cancelled.ts";

const MARK = "/var/lib/muster/agent/drain.json";
/** While the file /etc/nologin exists, only root can log in to the host (pam_nologin). */
export const NOLOGIN = "/etc/nologin";
export const NOLOGIN_START = "This host is being drained by Muster";
const TOOL_TIMEOUT_MS = 15_000;
/**
 * How many users the report of a drain names at most, so that the report fits into a frame. The drain waits for all users, even for those that its
 * report does not name.
 */
const MOST_TOLD = 100;

export interface DrainTiming {
  readonly lookEveryMs: number;
  /** How often the drain reports progress, which renews the task's lease of 300 s. */
  readonly progressEveryMs: number;
  /** How many milliseconds the processes of an ended login session may take to end. */
  readonly endWithinMs: number;
}
const TIMING: DrainTiming = { lookEveryMs: 2_000, progressEveryMs: 60_000, endWithinMs: 20_000 };

const Mark = z.object({
  task_id: z.string(),
  boot_id: z.string(),
  /** The deadline on the host's uptime in seconds, which no step of the wall clock changes. */
  deadline_uptime: z.number(),
});
type Handler = TaskHandlers["node.drain"];
type Run = Parameters<Handler>[1];
interface LoginSession {
  /** The login manager's id of the session, or null for a terminal that the login manager does not list. */
  readonly id: string | null;
  readonly uid: number;
  readonly user: string;
}

/**
 * Prevents new logins and waits for the end of all login sessions. With `force`, the drain ends the sessions after its deadline. A second run of a
 * drain keeps the first run's deadline and reads the login sessions once more. A drain that the hub cancels allows logins again.
 */
export const drain =
  (system: System, timing: DrainTiming = TIMING): Handler =>
  async (input, run) => {
    let deadline: number;
    try {
      deadline = await mark(system, input, run);
    } catch (error) {
      return {
        ok: false,
        error: "mark_failed",
        message: `The host could not be marked as draining: ${messageOf(error)}`,
      };
    }
    try {
      return await empty(system, timing, input, deadline, run);
    } catch (error) {
      if (isCancelledByHub(run.signal)) await unmark(system);
      throw error;
    }
  };

/**
 * Marks the host as draining, and returns the drain's deadline as an uptime of the host in seconds. After a reboot of the host, the drain's time
 * begins once more.
 */
async function mark(system: System, input: TaskInput<"node.drain">, run: Run): Promise<number> {
  const boot_id = await system.bootId();
  const before = Mark.safeParse(parsed(await system.read(MARK)));
  const isOurs = before.success && before.data.task_id === run.taskId && before.data.boot_id === boot_id;
  const deadline = isOurs ? before.data.deadline_uptime : system.uptimeSeconds() + input.deadline_seconds;
  const text = { task_id: run.taskId, reason: input.reason, boot_id, deadline_uptime: deadline };
  await system.write(MARK, `${JSON.stringify(text)}\n`, 0o644);
  // The nologin file of another program also prevents logins, and the drain may not replace it.
  const present = await system.read(NOLOGIN);
  if (present === null || present.startsWith(NOLOGIN_START))
    await system.write(NOLOGIN, `${NOLOGIN_START}: ${input.reason}\n`, 0o644);
  return deadline;
}

export async function isDraining(system: System): Promise<boolean> {
  return (await system.read(MARK)) !== null;
}

export async function unmark(system: System): Promise<void> {
  if ((await system.read(NOLOGIN))?.startsWith(NOLOGIN_START)) await system.remove(NOLOGIN);
  await system.remove(MARK);
}

async function empty(
  system: System,
  timing: DrainTiming,
  input: TaskInput<"node.drain">,
  deadline: number,
  run: Run,
): Promise<TaskReply<"node.drain">> {
  const read = input.force ? readAllSessions : readSessions;
  const left = await waitForSessions(system, read, timing, deadline, run);
  if (left.length === 0) return { ok: true, result: { drained: true, sessions_closed: 0, remaining_users: [] } };
  if (!input.force)
    return {
      ok: false,
      error: "deadline_passed",
      message: `Sessions of ${usersOf(left).join(", ")} are still open after ${input.deadline_seconds} s. Ask them to log out, or drain with force.`,
    };
  for (const { id } of left) if (id !== null) await system.run("loginctl", ["terminate-session", id], TOOL_TIMEOUT_MS);
  const ownership = { owns: holdsTerminalOf(isHuman), isOwnUid: () => false, slice: null };
  await endProcesses(system.processes, ownership, run.signal, { ...END_TIMING, killMs: timing.endWithinMs });
  const survivors = await waitForSessions(
    system,
    read,
    timing,
    system.uptimeSeconds() + timing.endWithinMs / 1000,
    run,
  );
  if (survivors.length > 0)
    return {
      ok: false,
      error: "session_survived",
      message: `Sessions of ${usersOf(survivors).join(", ")} did not end when they were told to. Look for processes that hang on this host.`,
    };
  return { ok: true, result: { drained: true, sessions_closed: left.length, remaining_users: [] } };
}

/** Waits until no login session is open or the drain's deadline has passed, and returns the open sessions. */
async function waitForSessions(
  system: System,
  read: (system: System) => Promise<LoginSession[]>,
  timing: DrainTiming,
  deadline: number,
  run: Run,
): Promise<readonly LoginSession[]> {
  let told = "";
  let toldAt = 0;
  for (;;) {
    const sessions = await read(system);
    if (sessions.length === 0 || system.uptimeSeconds() >= deadline) return sessions;
    const users = usersOf(sessions);
    if (users.join() !== told || performance.now() - toldAt >= timing.progressEveryMs) {
      run.progress({ remaining_users: users.slice(0, MOST_TOLD) });
      told = users.join();
      toldAt = performance.now();
    }
    await sleep(timing.lookEveryMs, undefined, { signal: run.signal });
  }
}

/**
 * Parses the lines of `loginctl list-sessions --no-legend`: id, uid, user, and columns that differ between versions. `readSessions` leaves out the
 * sessions of system users. `readSessions` throws when `loginctl` fails, because a missing list does not prove that no user is logged in.
 */
async function readSessions(system: System): Promise<LoginSession[]> {
  const ran = await system.run("loginctl", ["list-sessions", "--no-legend"], TOOL_TIMEOUT_MS);
  if (ran.exitCode !== 0) throw new Error(`loginctl ended with status ${ran.exitCode}: ${ran.stderr}`);
  return ran.stdout.split("\n").flatMap((line) => {
    const [id, uid, user] = line.trim().split(/\s+/);
    const number = Number(uid);
    return id && user && isHuman(number) ? [{ id, uid: number, user }] : [];
  });
}

/**
 * Returns the login sessions, and the terminals of users without a login session. For example, a terminal of the program `screen` stays open after
 * its user has logged out. Only a drain with `force` waits for terminals without a login session and ends their processes.
 */
async function readAllSessions(system: System): Promise<LoginSession[]> {
  const listed = await readSessions(system);
  const isUnlisted = (uid: number): boolean => isHuman(uid) && !listed.some((session) => session.uid === uid);
  const terminals = await openTerminals(system, isUnlisted);
  return [...listed, ...terminals.map(({ uid, user }) => ({ id: null, uid, user }))];
}

const usersOf = (sessions: readonly LoginSession[]): string[] =>
  [...new Set(sessions.map((session) => session.user))].sort();

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    // A drain starts anew if the file that marks the host as draining is not JSON.
    return null;
  }
}
