import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** A process under test says that it is ready by one line on stdout: a JSON object with the member `listening`. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Rejects when the child process ends before it prints the ready line. */
  readonly ready: Promise<Record<string, unknown>>;
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
  stop(graceMs?: number): Promise<void>;
}

export interface ChildOptions {
  readonly name: string;
  /** The Node.js executable that runs the child process's script, by default that of the test process. */
  readonly command?: string;
  readonly script: string;
  /** The checkout that `script` belongs to, by default the checkout of the test process. */
  readonly checkout?: string | undefined;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly nodeArgs?: readonly string[];
}

const REPOSITORY = new URL("../..", import.meta.url).pathname;

export function startChild(options: ChildOptions): Child {
  mkdirSync(dirname(options.logFile), { recursive: true });
  const log = createWriteStream(options.logFile, { flags: "a" });
  const proc = spawn(
    options.command ?? process.execPath,
    [...(options.nodeArgs ?? []), options.script, ...(options.args ?? [])],
    {
      cwd: options.checkout ?? REPOSITORY,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      // Each child process has its own process group, so that a Ctrl-C in the terminal reaches only its parent process. `npm run demo` receives the
      // Ctrl-C and stops its child processes in order.
      detached: true,
    },
  );
  proc.stderr.pipe(log, { end: false });
  const gone = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
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
