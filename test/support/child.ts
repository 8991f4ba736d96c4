import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * A real process under test. The output of the process goes to a file. The ready line on stdout, a JSON object with the member `listening`, reports
 * that the process is ready.
 */
export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Resolves with the process's parsed ready line. Rejects when the process ends before it prints the ready line. */
  readonly ready: Promise<Record<string, unknown>>;
  /** Resolves with the exit code or signal when the process has ended. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
  /** Sends SIGTERM to the process, and SIGKILL if the process still runs after `graceMs` milliseconds. */
  stop(graceMs?: number): Promise<void>;
}

export interface ChildOptions {
  readonly name: string;
  /**
   * The Node.js executable that runs the child process's script. Without `command`, the Node.js executable of the test process runs the script of the
   * child process.
   */
  readonly command?: string;
  /** The path of the child process's script, relative to the repository or absolute. */
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly nodeArgs?: readonly string[];
}

const REPOSITORY = new URL("../..", import.meta.url).pathname;

/** Starts a real process. The process is ready when it prints a JSON object with the member `listening` as a line on stdout. */
export function startChild(options: ChildOptions): Child {
  mkdirSync(dirname(options.logFile), { recursive: true });
  const log = createWriteStream(options.logFile, { flags: "a" });
  const proc = spawn(
    options.command ?? process.execPath,
    [...(options.nodeArgs ?? []), options.script, ...(options.args ?? [])],
    {
      cwd: REPOSITORY,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      // Each child has its own process group. The process group keeps a Ctrl-C in the terminal away from the child. `npm run demo` receives the
      // Ctrl-C and stops its children in order.
      detached: true,
    },
  );
  proc.stderr.pipe(log, { end: false });
  const gone = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    // The promise `gone` resolves only after the log file is complete, because callers read the log file when `gone` has resolved.
    proc.once("close", (code, signal) => log.end(() => resolve({ code, signal })));
    proc.once("error", () => resolve({ code: null, signal: null }));
  });
  const child: Child = {
    name: options.name,
    pid: proc.pid ?? -1,
    ready: readyLine(proc, options, gone),
    gone,
    kill: (signal) => void proc.kill(signal),
    stop: async (graceMs = 20_000) => {
      if (proc.exitCode === null && proc.signalCode === null) proc.kill("SIGTERM");
      const timer = setTimeout(() => proc.kill("SIGKILL"), graceMs);
      await gone;
      clearTimeout(timer);
    },
  };
  child.ready.catch(() => undefined);
  return child;
}

function readyLine(proc: ChildProcess, options: ChildOptions, gone: Child["gone"]): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    let buffer = "";
    proc.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      buffer += chunk;
      const lines = buffer.split("\n");
      buffer = lines.pop() ?? "";
      for (const line of lines) {
        const parsed = parseReady(line);
        if (parsed !== null) resolve(parsed);
      }
    });
    void gone.then(({ code, signal }) =>
      reject(
        new Error(
          `${options.name} ended before it was ready (code ${code}, signal ${signal}); read ${options.logFile}`,
        ),
      ),
    );
  });
}

function parseReady(line: string): Record<string, unknown> | null {
  if (!line.startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "listening" in value
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
