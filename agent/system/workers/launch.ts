import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withoutCredentials } from "../../../shared/without-credentials.ts";
import type { RunTool } from "../exec.ts";
import { isMissing } from "../files.ts";
import { LOG_FILE, WORKER_ARGUMENT } from "./work-files.ts";

const START_TIMEOUT_MS = 30_000;
/** How many seconds after SIGTERM systemd sends SIGKILL to a worker process. */
const STOP_SECONDS = 10;
/** systemd creates the folder /run/systemd/system at boot, so the folder shows that systemd runs (sd_booted(3)). */
const SYSTEMD_RUNS = "/run/systemd/system";
export const isSystemdAt = (root: string): boolean => existsSync(join(root, SYSTEMD_RUNS));

export interface Launch {
  readonly folder: string;
  readonly name: string;
  readonly deadlineSeconds: number;
  readonly memoryMax: string;
}

export interface Launcher {
  /** Whether systemd runs on the host and enforces the deadline and memory limit of worker processes. */
  readonly hasSystemd: boolean;
  launch(launch: Launch): Promise<void>;
}

/** The command line of the agent's own program, which with additional arguments starts a worker process. */
export const ownProgram = (): readonly string[] => [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)];

/**
 * Starts each worker process as a transient unit of systemd. On a host without systemd, a supervisor in a separate session starts the worker process.
 * The supervisor of a worker process outlives the agent, and enforces the worker process's deadline.
 */
export function launcherFor(root: string, run: RunTool, program: readonly string[] = ownProgram()): Launcher {
  const hasSystemd = isSystemdAt(root);
  return { hasSystemd, launch: hasSystemd ? asUnit(run, program) : asChild(program) };
}

export const unitArguments = (launch: Launch, program: readonly string[]): string[] => [
  `--unit=muster-work-${launch.name}`,
  "--collect",
  "--no-block",
  "--quiet",
  ...[
    `RuntimeMaxSec=${launch.deadlineSeconds}`,
    `TimeoutStopSec=${STOP_SECONDS}`,
    `MemoryMax=${launch.memoryMax}`,
    "LimitCORE=0",
    "UMask=0077",
    "IOSchedulingClass=idle",
    `StandardOutput=append:${join(launch.folder, LOG_FILE)}`,
    `StandardError=append:${join(launch.folder, LOG_FILE)}`,
  ].map((property) => `--property=${property}`),
  "--",
  ...program,
  WORKER_ARGUMENT,
  "perform",
  launch.folder,
];

const asUnit =
  (run: RunTool, program: readonly string[]): Launcher["launch"] =>
  async (launch) => {
    const { exitCode, stderr } = await run("systemd-run", unitArguments(launch, program), START_TIMEOUT_MS);
    // `systemd-run` fails if the systemd unit of a worker process exists already. An agent may have been killed after it had started a worker
    // process's unit and before the unit reported its start.
    if (exitCode !== 0 && !/already (loaded|exists)/.test(stderr))
      throw new Error(`systemd-run ended with status ${exitCode}: ${stderr.slice(-500)}`);
  };

const asChild =
  (program: readonly string[]): Launcher["launch"] =>
  async ({ folder }) => {
    const [command = process.execPath, ...args] = program;
    const log = openSync(join(folder, LOG_FILE), "a", 0o600);
    try {
      const child = spawn(command, [...args, WORKER_ARGUMENT, "supervise", folder], {
        detached: true,
        stdio: ["ignore", log, log],
      });
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", reject);
      });
      child.unref();
    } finally {
      closeSync(log);
    }
  };

/** Returns the last lines of a worker process's log, for a message to an operator. */
export function lastLines(folder: string): string {
  try {
    // Secrets are removed before the log is cut, because `withoutCredentials` finds a secret by the name in front of it, and a cut may remove the
    // name.
    return withoutCredentials(readFileSync(join(folder, LOG_FILE), "utf8"))
      .slice(-500)
      .trim();
  } catch (error) {
    if (isMissing(error)) return "";
    throw error;
  }
}
