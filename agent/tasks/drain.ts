import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { TaskHandlers, TaskInput, TaskReply, TaskResult } from "../../shared/tasks/index.ts";
import { type ClosedBy, planDrain } from "../accounts/drain-plan.ts";
import { END_TIMING, endProcesses } from "../accounts/end-processes.ts";
import { releaseOfSurvivors } from "../accounts/fuse.ts";
import { isHuman } from "../accounts/human-uid.ts";
import { endSession, type LoginSession, readAllSessions, readSessions, usersOf } from "../accounts/login-sessions.ts";
import { holdsTerminalOf } from "../accounts/terminals.ts";
import { messageOf } from "../message-of.ts";
import { NOLOGIN, NOLOGIN_START } from "../system/nologin.ts";
import type { System } from "../system/system.ts";
import { isCancelledByHub } from "./cancelled.ts";

const MARK = "/var/lib/muster/agent/drain.json";
/**
 * How many users with open sessions the report of a drain names at most, so that the report fits into one message to the hub. The drain waits until
 * all users have logged out, even those that its report does not name.
 */
const MOST_TOLD = 100;

export interface DrainTiming {
  readonly lookEveryMs: number;
  /** How often the agent reports progress while it waits for users to log out, which renews the task's lease of 300 s. */
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

/**
 * Prevents new logins and waits for the end of all login sessions. With `force`, the drain ends the login sessions that are still open after its
 * deadline. A second run of a drain keeps the first run's deadline and reads the login sessions once more. If the hub cancels a drain, the agent
 * allows logins again.
 */
export const drain =
  (system: System, timing: DrainTiming = TIMING): Handler =>
  async (input, run) => {
    if (input.plan === true) return { ok: true, result: await plan(system, input) };
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

async function plan(system: System, input: TaskInput<"node.drain">): Promise<TaskResult<"node.drain">> {
  const { users, steps } = await planDrain(system, input, await closedBy(system));
  return { drained: false, sessions_closed: 0, remaining_users: users.slice(0, MOST_TOLD), steps };
}

async function closedBy(system: System): Promise<ClosedBy> {
  const present = await system.read(NOLOGIN);
  return present === null ? null : present.startsWith(NOLOGIN_START) ? "drain" : "other";
}

/**
 * Writes the file that marks the host as draining, and returns the drain's deadline as an uptime of the host in seconds. After a reboot of the host,
 * the users get the drain's whole time again to log out.
 */
async function mark(system: System, input: TaskInput<"node.drain">, run: Run): Promise<number> {
  const boot_id = await system.bootId();
  const before = Mark.safeParse(parsed(await system.read(MARK)));
  const isOurs = before.success && before.data.task_id === run.taskId && before.data.boot_id === boot_id;
  const deadline = isOurs ? before.data.deadline_uptime : system.uptimeSeconds() + input.deadline_seconds;
  const text = { task_id: run.taskId, reason: input.reason, boot_id, deadline_uptime: deadline };
  await system.write(MARK, `${JSON.stringify(text)}\n`, 0o644);
  // The nologin file of another program also prevents logins, and the drain may not replace it.
  if ((await closedBy(system)) !== "other") await system.write(NOLOGIN, `${NOLOGIN_START}: ${input.reason}\n`, 0o644);
  return deadline;
}

export async function isDraining(system: System): Promise<boolean> {
  return (await system.read(MARK)) !== null;
}

export async function unmark(system: System): Promise<void> {
  if ((await closedBy(system)) === "drain") await system.remove(NOLOGIN);
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
  for (const { id } of left) if (id !== null) await endSession(system, id);
  const release = releaseOfSurvivors(system, isHuman);
  const ownership = { owns: holdsTerminalOf(isHuman), isOwnUid: () => false, slice: null, release };
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

/** Waits until no login session is open or the drain's deadline has passed, and returns the sessions that are still open. */
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

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    // A file that marks the host as draining but is not JSON counts as missing, so the drain's deadline counts from now.
    return null;
  }
}
