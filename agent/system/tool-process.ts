import { spawn } from "node:child_process";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { readProcess, waitChannel } from "./workers/processes.ts";

export type ToolEnd =
  | {
      readonly kind: "ended";
      /** Null if a signal ended the tool. */
      readonly exitCode: number | null;
      readonly signal: NodeJS.Signals | null;
      /** Whether the tool wrote more than `mostOutput` bytes and was ended for it. */
      readonly wroteTooMuch: boolean;
      readonly stdout: Buffer;
      /** The last characters of what the tool wrote to its standard error, without secrets. */
      readonly stderr: string;
    }
  /** The kernel did not start the tool. */
  | { readonly kind: "not_started"; readonly message: string }
  | HungTool;

/** The tool did not end within `timeoutMs`. If `isAlive` is true, the tool hangs in the kernel and has survived SIGKILL. */
export interface HungTool {
  readonly kind: "hung";
  readonly pid: number;
  readonly state: string;
  readonly wchan: string;
  readonly isAlive: boolean;
}

export interface ToolOptions {
  readonly timeoutMs: number;
  /** How many milliseconds the agent gives a tool to end after SIGTERM, and once more after SIGKILL. */
  readonly graceMs?: number;
  /** Content for the tool's standard input, which is empty by default. */
  readonly input?: string | Uint8Array;
  readonly mostOutput: number;
  readonly mostStderr: number;
}

export const GRACE_MS = 5_000;
const LONGEST_CHARACTER = 4;

/** The environment variables of every tool that the agent runs. A tool never gets the agent's own environment variables. */
export const toolEnvironment = (root: string): Record<string, string> => ({
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
  ...(root === "/" ? {} : { MUSTER_ROOT: root }),
});

/**
 * Runs a tool without a shell and with fixed environment variables. A tool that does not end within `timeoutMs` gets SIGTERM, and SIGKILL after
 * `graceMs`. The agent abandons a tool that survives SIGKILL, because no signal ends a process that waits in the kernel.
 */
export function runToolAt(root: string, path: string, args: readonly string[], options: ToolOptions): Promise<ToolEnd> {
  const graceMs = options.graceMs ?? GRACE_MS;
  const { mostOutput, mostStderr } = options;
  return new Promise((resolve) => {
    const child = startTool(root, path, args);
    if (child instanceof Error) return resolve(notStarted(path, child));
    const stdout: Buffer[] = [];
    let stderr: Buffer = Buffer.alloc(0);
    let size = 0;
    let hung: Place | null = null;
    const timers: NodeJS.Timeout[] = [];
    const after = (ms: number, act: () => void): void => void timers.push(setTimeout(act, ms));
    const settle = (end: ToolEnd): void => {
      for (const timer of timers) clearTimeout(timer);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
      resolve(end);
    };
    const settleEnded = (): void =>
      settle({
        kind: "ended",
        exitCode: child.exitCode,
        signal: child.signalCode,
        wroteTooMuch: size > mostOutput,
        stdout: Buffer.concat(stdout),
        stderr: withoutCredentials(stderr.toString("utf8")).slice(-mostStderr),
      });
    const settleHung = (isAlive: boolean): void =>
      settle({ kind: "hung", pid: child.pid ?? -1, state: hung?.state ?? "?", wchan: hung?.wchan ?? "", isAlive });
    const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
    /**
     * Counts the tool's output, and ends a tool that writes too much. After the end of a tool that wrote too much, the agent closes the pipes of the
     * tool's output.
     */
    const fits = (chunk: Buffer): boolean => {
      size += chunk.length;
      if (size <= mostOutput) return true;
      if (hasEnded()) settleEnded();
      else if (size - chunk.length <= mostOutput) child.once("exit", settleEnded);
      child.kill("SIGKILL");
      return false;
    };
    child.stdout.on("data", (chunk: Buffer) => {
      if (fits(chunk)) stdout.push(chunk);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      fits(chunk);
      stderr = Buffer.concat([stderr, chunk]).subarray(-mostStderr * LONGEST_CHARACTER);
    });
    // A tool that ends without reading its input breaks the pipe of its input, but only the tool's exit status counts.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    child.once("error", (error) => settle(notStarted(path, error)));
    child.once("exit", () => void (hung !== null && settleHung(false)));
    child.once("close", settleEnded);
    after(options.timeoutMs, () => {
      // After a tool's end, a process that the tool left behind may keep the tool's pipes open.
      if (hasEnded()) return settleEnded();
      hung = placeOf(child.pid ?? -1);
      child.kill("SIGTERM");
      after(graceMs, () => {
        child.kill("SIGKILL");
        after(graceMs, () => settleHung(true));
      });
    });
  });
}

/** Returns the error of a program that Node.js refuses to start at once, for example of a file that is no program. */
function startTool(root: string, path: string, args: readonly string[]) {
  try {
    // A tool stays in the session of its worker process, so that the end of a lost worker process also ends the tool.
    return spawn(path, [...args], { stdio: ["pipe", "pipe", "pipe"], cwd: "/", env: toolEnvironment(root) });
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

const notStarted = (path: string, { message }: Error): ToolEnd => ({
  kind: "not_started",
  message: `${path} could not be run: ${message}`,
});

interface Place {
  readonly state: string;
  readonly wchan: string;
}

const placeOf = (pid: number): Place => ({ state: readProcess(pid)?.state ?? "?", wchan: waitChannel(pid) });
