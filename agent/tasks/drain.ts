import { setTimeout as sleep } from "node:timers/promises";
import type { TaskHandlers, TaskInput } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";

const MARK = "/var/lib/muster/agent/drain.json";
/** Its presence keeps everybody but root from logging in (pam_nologin). */
const NOLOGIN = "/etc/nologin";
const FIRST_HUMAN_UID = 1000;
const NOBODY = 65534;
const LOOK_EVERY_MS = 2_000;
const TOOL_TIMEOUT_MS = 15_000;

interface LoginSession {
  readonly id: string;
  readonly user: string;
}

/**
 * Lets no new tenant session in and waits until the last one has ended, or until the deadline; with `force` what is left then is ended. Harmless to
 * repeat: the mark and the file are written again, the sessions looked at anew.
 */
export const drain =
  (system: System): TaskHandlers["node.drain"] =>
  async (input, run) => {
    try {
      await system.write(MARK, `${JSON.stringify({ reason: input.reason, task_id: run.taskId })}\n`, 0o644);
      await system.write(NOLOGIN, `This host is being drained: ${input.reason}\n`, 0o644);
    } catch (error) {
      return {
        ok: false,
        error: "mark_failed",
        message: `The host could not be marked as draining: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
    const left = await waitForSessions(system, input, run);
    if (left.length === 0) return { ok: true, result: { drained: true, sessions_closed: 0, remaining_users: [] } };
    if (!input.force)
      return {
        ok: false,
        error: "deadline_passed",
        message: `Sessions of ${usersOf(left).join(", ")} are still open after ${input.deadline_seconds} s.`,
      };
    for (const session of left) await system.run("loginctl", ["terminate-session", session.id], TOOL_TIMEOUT_MS);
    const survivors = await readSessions(system);
    if (survivors.length > 0)
      return {
        ok: false,
        error: "session_survived",
        message: `Sessions of ${usersOf(survivors).join(", ")} could not be ended.`,
      };
    return { ok: true, result: { drained: true, sessions_closed: left.length, remaining_users: [] } };
  };

async function waitForSessions(
  system: System,
  input: TaskInput<"node.drain">,
  run: Parameters<TaskHandlers["node.drain"]>[1],
): Promise<LoginSession[]> {
  const deadline = performance.now() + input.deadline_seconds * 1000;
  for (;;) {
    const sessions = await readSessions(system);
    if (sessions.length === 0 || performance.now() >= deadline) return sessions;
    run.progress({ remaining_users: usersOf(sessions) });
    await sleep(LOOK_EVERY_MS, undefined, { signal: run.signal });
  }
}

/** Lines of `loginctl list-sessions --no-legend`: id, uid, user, seat, tty. System users are none of ours. */
async function readSessions(system: System): Promise<LoginSession[]> {
  const ran = await system.run("loginctl", ["list-sessions", "--no-legend"], TOOL_TIMEOUT_MS);
  if (ran.exitCode !== 0) throw new Error(`loginctl ended with status ${ran.exitCode}: ${ran.stderr}`);
  return ran.stdout.split("\n").flatMap((line) => {
    const [id, uid, user] = line.trim().split(/\s+/);
    const number = Number(uid);
    return id && user && number >= FIRST_HUMAN_UID && number !== NOBODY ? [{ id, user }] : [];
  });
}

const usersOf = (sessions: readonly LoginSession[]): string[] =>
  [...new Set(sessions.map((session) => session.user))].sort();
