import { spawn } from "node:child_process";
import { join } from "node:path";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { isPresent } from "./files.ts";
import { readProcess, waitChannel } from "./workers/processes.ts";

export type Attempt =
  | { readonly kind: "ended"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  /** The host does not have the tool that the agent wants to run, or the kernel did not start it. */
  | { readonly kind: "missing"; readonly message: string }
  /** The tool that the agent ran did not end within `timeoutMs`. If `isAlive` is true, the tool hangs in the kernel and survived SIGKILL. */
  | {
      readonly kind: "hung";
      readonly pid: number;
      readonly state: string;
      readonly wchan: string;
      readonly isAlive: boolean;
    };

export interface AttemptOptions {
  readonly timeoutMs: number;
  /** How many milliseconds the tool may take to end after SIGTERM, and as many after SIGKILL. */
  readonly graceMs?: number;
  /** Text for the tool's standard input, which is empty by default. */
  readonly input?: string;
  /** With `latin1`, each byte of the tool's output is one character of `stdout`. Without `latin1`, the agent reads the tool's output as UTF-8. */
  readonly encoding?: "utf8" | "latin1";
}
export type AttemptTool = (tool: string, args: readonly string[], options: AttemptOptions) => Promise<Attempt>;

const GRACE_MS = 5_000;
/** The agent ends a tool that writes more bytes than this, so that a broken tool does not fill the host's memory. */
const MOST_OUTPUT = 16_000_000;
const MOST_STDERR = 4_000;
const LONGEST_CHARACTER = 4;
const FOLDERS = ["usr/bin", "usr/sbin", "bin", "sbin", "opt/rocm/bin"];

/**
 * Returns a function that runs a tool, which may hang in a driver, without a shell and with fixed environment variables. A tool that does not end
 * within `timeoutMs` gets SIGTERM, and SIGKILL after `graceMs`. The agent abandons a tool that survives SIGKILL, because no signal ends a process
 * that waits in the kernel.
 */
export function attemptsBelow(root: string): AttemptTool {
  return async (tool, args, options) => {
    const path = await pathOf(root, tool);
    if (path === null) return { kind: "missing", message: `The tool ${tool} is not installed on this host.` };
    return attempt(root, path, args, options);
  };
}

async function pathOf(root: string, tool: string): Promise<string | null> {
  for (const folder of FOLDERS) {
    const path = join(root, folder, tool);
    if (await isPresent(path)) return path;
  }
  return null;
}

function attempt(root: string, path: string, args: readonly string[], options: AttemptOptions): Promise<Attempt> {
  const graceMs = options.graceMs ?? GRACE_MS;
  return new Promise((resolve) => {
    // A tool stays in the session of its worker process, so that the end of a lost worker process also ends the tool.
    const child = spawn(path, [...args], { stdio: ["pipe", "pipe", "pipe"], cwd: "/", env: environment(root) });
    const stdout: Buffer[] = [];
    let stderr: Buffer = Buffer.alloc(0);
    let size = 0;
    let hung: Place | null = null;
    const timers: NodeJS.Timeout[] = [];
    const after = (ms: number, act: () => void): void => void timers.push(setTimeout(act, ms));
    const settle = (result: Attempt): void => {
      for (const timer of timers) clearTimeout(timer);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
      resolve(result);
    };
    const settleEnded = (): void => {
      const told = withoutCredentials(stderr.toString("utf8")).slice(-MOST_STDERR);
      const tooMuch = size > MOST_OUTPUT ? `The tool wrote more than ${MOST_OUTPUT} bytes and was stopped. ` : "";
      const ended = child.signalCode === null ? "" : `The tool was ended by ${child.signalCode}. `;
      const out = Buffer.concat(stdout).toString(options.encoding ?? "utf8");
      settle({ kind: "ended", exitCode: child.exitCode ?? 128, stdout: out, stderr: `${tooMuch}${ended}${told}` });
    };
    const settleHung = (isAlive: boolean): void =>
      settle({ kind: "hung", pid: child.pid ?? -1, state: hung?.state ?? "?", wchan: hung?.wchan ?? "", isAlive });
    /**
     * Counts the tool's output, and ends a tool that writes too much. After the end of a tool that wrote too much, the agent closes the pipes of the
     * tool's output.
     */
    const fits = (chunk: Buffer): boolean => {
      size += chunk.length;
      if (size <= MOST_OUTPUT) return true;
      if (child.exitCode !== null || child.signalCode !== null) settleEnded();
      else if (size - chunk.length <= MOST_OUTPUT) child.once("exit", settleEnded);
      child.kill("SIGKILL");
      return false;
    };
    child.stdout.on("data", (chunk: Buffer) => {
      if (fits(chunk)) stdout.push(chunk);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      fits(chunk);
      stderr = Buffer.concat([stderr, chunk]).subarray(-MOST_STDERR * LONGEST_CHARACTER);
    });
    // A tool that ends without reading its input breaks the pipe of its input, but only the tool's exit status counts.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    child.once("error", (error) => settle({ kind: "missing", message: `${path} could not be run: ${error.message}` }));
    child.once("exit", () => void (hung !== null && settleHung(false)));
    child.once("close", settleEnded);
    after(options.timeoutMs, () => {
      // After a tool's end, a process that the tool left behind may keep the tool's pipes open.
      if (child.exitCode !== null || child.signalCode !== null) return settleEnded();
      hung = placeOf(child.pid ?? -1);
      child.kill("SIGTERM");
      after(graceMs, () => {
        child.kill("SIGKILL");
        after(graceMs, () => settleHung(true));
      });
    });
  });
}

const environment = (root: string): Record<string, string> => ({
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
  ...(root === "/" ? {} : { MUSTER_ROOT: root }),
});

interface Place {
  readonly state: string;
  readonly wchan: string;
}

const placeOf = (pid: number): Place => ({ state: readProcess(pid)?.state ?? "?", wchan: waitChannel(pid) });
