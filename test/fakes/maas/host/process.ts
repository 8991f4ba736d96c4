import type { ChildProcess } from "node:child_process";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compileCacheVariables } from "../../../config/compile-cache.ts";

const STOP_GRACE_MS = 5000;

/**
 * Returns a file's path below the host's root if the file exists there. If the simulated host lacks the file, returns the path unchanged, which then
 * names a file of this computer.
 */
function underRoot(root: string, path: string): string {
  return path.startsWith("/") && existsSync(join(root, path)) ? join(root, path) : path;
}

function hostEnvironment(root: string, extra: Readonly<Record<string, string>>): Record<string, string> {
  return {
    PATH: `${join(root, "usr/bin")}:${join(root, "usr/sbin")}:${process.env["PATH"] ?? "/usr/bin:/bin"}`,
    HOME: join(root, "root"),
    LANG: "C.UTF-8",
    MUSTER_ROOT: root,
    ...compileCacheVariables(),
    ...extra,
  };
}

export interface HostCommand {
  root: string;
  command: readonly string[];
  environment: Readonly<Record<string, string>>;
  log: string;
}

/** Starts a command of the simulated host in its own process group, so that a stop of the command also stops its child processes. */
export function startOnHost({ root, command, environment, log }: HostCommand): ChildProcess {
  const [program = "/bin/false", ...rest] = command;
  const output = openSync(join(root, log), "a");
  try {
    return spawn(
      underRoot(root, program),
      rest.map((word) => underRoot(root, word)),
      { cwd: root, env: hostEnvironment(root, environment), detached: true, stdio: ["ignore", output, output] },
    );
  } finally {
    closeSync(output);
  }
}

export function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once("error", () => resolve(127));
    child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
}

function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "EPERM")) return false;
    throw error;
  }
}

/** Ends a simulated host's process and its process group: with SIGTERM, and after a grace period with SIGKILL. */
export async function stopOnHost(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  signalGroup(pid, "SIGTERM");
  const timer = setTimeout(() => signalGroup(pid, "SIGKILL"), STOP_GRACE_MS);
  await gone;
  clearTimeout(timer);
  signalGroup(pid, "SIGKILL");
}

function pidFile(root: string, unit: string): string {
  return join(root, "run/units", `${unit}.pid`);
}

export function notePid(root: string, unit: string, pid: number): void {
  writeFileSync(pidFile(root, unit), String(pid));
}

export function forgetPid(root: string, unit: string): void {
  rmSync(pidFile(root, unit), { force: true });
}

/**
 * True if the process belongs to the simulated host with the given root folder. The kernel may have given the pid of an ended process to another
 * program, so callers check a stored pid with `belongsTo`.
 */
function belongsTo(root: string, pid: number): boolean {
  if (existsSync("/proc/self/environ")) {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`MUSTER_ROOT=${root}`);
    } catch {
      return false;
    }
  }
  try {
    return execFileSync("ps", ["eww", "-p", String(pid), "-o", "command="], { encoding: "utf8" }).includes(
      `MUSTER_ROOT=${root}`,
    );
  } catch {
    return false;
  }
}

export function killLeftover(root: string, unit: string): void {
  const path = pidFile(root, unit);
  if (!existsSync(path)) return;
  const pid = Number(readFileSync(path, "utf8"));
  if (Number.isInteger(pid) && pid > 1 && belongsTo(root, pid)) signalGroup(pid, "SIGKILL");
  rmSync(path, { force: true });
}
