import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { TaskHandlers } from "../../shared/tasks/index.ts";
import type { TERMINAL_STEPS } from "../../shared/tasks/terminal-close.ts";
import { parseAccounts } from "../accounts/account-files.ts";
import { END_TIMING, type EndTiming, endProcesses, runningOf, survivorText } from "../accounts/end-processes.ts";
import { releaseOfSurvivors } from "../accounts/fuse.ts";
import { isHuman } from "../accounts/human-uid.ts";
import { isSystemdRunning, toolFault } from "../accounts/logins.ts";
import { cleaningStep, namesIn } from "../accounts/step.ts";
import { holdsTerminalOf } from "../accounts/terminals.ts";
import type { HostProcess } from "../system/processes.ts";
import type { System } from "../system/system.ts";

type Step = CleaningStep & { readonly step: (typeof TERMINAL_STEPS)[number] };
const TOOL_TIMEOUT_MS = 15_000;

/**
 * Ends login sessions by the login manager, and afterwards ends the processes that still have a terminal. A login session that the login manager does
 * not list, for example a session of `su`, is found by its terminal.
 */
export const terminalClose =
  (system: System, timing: EndTiming = END_TIMING): TaskHandlers["terminal.close"] =>
  async ({ login_user, plan }, run) => {
    const account = parseAccounts(await system.read("/etc/passwd")).find(({ name }) => name === login_user);
    const isTheirs = (uid: number): boolean => (login_user === null ? isHuman(uid) : uid === account?.uid);
    const target = login_user ?? "all users";
    const sessions = await sessionsOf(system, isTheirs);
    const onTerminal = holdsTerminalOf(isTheirs);
    const first = await runningOf(system.processes, onTerminal);
    if (plan) return { ok: true, result: { sessions_closed: 0, steps: planned(target, sessions, first) } };
    const faults: string[] = [];
    for (const id of sessions ?? []) {
      const fault = await toolFault(system, "loginctl", ["terminate-session", id]);
      if (fault !== null) faults.push(fault);
    }
    // `endProcesses` also ends processes of an ended login session, because the login manager may leave them alive.
    const release = releaseOfSurvivors(system, isTheirs);
    const ownership = { owns: onTerminal, isOwnUid: () => false, slice: null, release };
    const ended = await endProcesses(system.processes, ownership, run.signal, timing);
    if (ended.limit !== null) faults.push(ended.limit);
    const left = (await sessionsOf(system, isTheirs)) ?? [];
    const survivors = [
      ...left.filter((id) => sessions?.includes(id)).map((id) => `session ${id}`),
      ...(ended.survivors.length === 0 ? [] : [survivorText(system.processes, ended.survivors)]),
    ];
    if (survivors.length > 0)
      return {
        ok: false,
        error: "sessions_survive",
        message: `These did not end: ${survivors.join(", ")}. ${faults.join(" ")} Look for processes that hang on this host.`,
      };
    const terminals = new Set(first.map(({ terminal }) => terminal)).size;
    return {
      ok: true,
      result: {
        sessions_closed: Math.max(sessions?.length ?? 0, terminals),
        steps: [
          sessionsStep(target, sessions),
          cleaningStep("terminals", target, "ok", `The processes on ${terminals} terminals were ended.`, {
            terminals,
            processes: ended.found,
            killed: ended.killed,
          }),
        ],
      },
    };
  };

/** The ids of the login sessions, or null on a host without systemd. `sessionsOf` leaves out the sessions of system users. */
async function sessionsOf(system: System, isTheirs: (uid: number) => boolean): Promise<string[] | null> {
  if (!(await isSystemdRunning(system))) return null;
  const { exitCode, stdout, stderr } = await system.run("loginctl", ["list-sessions", "--no-legend"], TOOL_TIMEOUT_MS);
  if (exitCode !== 0) throw new Error(`loginctl ended with status ${exitCode}: ${stderr}`);
  return stdout.split("\n").flatMap((line) => {
    const [id, uid] = line.trim().split(/\s+/);
    return id !== undefined && /^[A-Za-z0-9]+$/.test(id) && isTheirs(Number(uid)) ? [id] : [];
  });
}

const sessionsStep = (target: string, sessions: readonly string[] | null): Step =>
  sessions === null
    ? cleaningStep("sessions", target, "skipped", "systemd does not run, so the host has no login manager.")
    : cleaningStep("sessions", target, "ok", `${sessions.length} sessions were ended.`, { sessions: sessions.length });

function planned(target: string, sessions: readonly string[] | null, processes: readonly HostProcess[]): Step[] {
  const names = namesIn(processes.map(({ comm, pid }) => `${comm} (${pid})`));
  const count = sessions?.length ?? 0;
  return [
    cleaningStep("sessions", target, "planned", `${count} sessions would be ended.`, { sessions: count }),
    cleaningStep("terminals", target, "planned", `These processes would be ended: ${names || "none"}.`, {
      processes: processes.length,
    }),
  ];
}
