import { join } from "node:path";
import { isPresent } from "./files.ts";
import { type HungTool, runToolAt } from "./tool-process.ts";

export type Attempt =
  | { readonly kind: "ended"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  /** The host does not have the tool that the agent wants to run, or the kernel did not start it. */
  | { readonly kind: "missing"; readonly message: string }
  | HungTool;

export interface AttemptOptions {
  readonly timeoutMs: number;
  /** How many milliseconds the tool may take to end after SIGTERM, and as many after SIGKILL. */
  readonly graceMs?: number;
  /** Text or bytes for the tool's standard input, which is empty by default. */
  readonly input?: string | Uint8Array;
  /** With `latin1`, each byte of the tool's output is one character of `stdout`. Without `latin1`, the agent reads the tool's output as UTF-8. */
  readonly encoding?: "utf8" | "latin1";
}
export type AttemptTool = (tool: string, args: readonly string[], options: AttemptOptions) => Promise<Attempt>;

/** The agent ends a tool that writes more bytes than MOST_OUTPUT, so that a broken tool does not fill the host's memory. */
const MOST_OUTPUT = 16_000_000;
const MOST_STDERR = 4_000;
const FOLDERS = ["usr/bin", "usr/sbin", "bin", "sbin", "opt/rocm/bin"];

/** Returns a function that runs a tool, which may hang in a driver, and tells how the tool ended. */
export function attemptsBelow(root: string): AttemptTool {
  return async (tool, args, { encoding = "utf8", ...options }) => {
    const path = await pathOf(root, tool);
    if (path === null) return { kind: "missing", message: `The tool ${tool} is not installed on this host.` };
    const end = await runToolAt(root, path, args, { ...options, mostOutput: MOST_OUTPUT, mostStderr: MOST_STDERR });
    if (end.kind === "hung") return end;
    if (end.kind === "not_started") return { kind: "missing", message: end.message };
    const tooMuch = end.wroteTooMuch ? `The tool wrote more than ${MOST_OUTPUT} bytes and was stopped. ` : "";
    const ended = end.signal === null ? "" : `The tool was ended by ${end.signal}. `;
    return {
      kind: "ended",
      exitCode: end.exitCode ?? 128,
      stdout: end.stdout.toString(encoding),
      stderr: `${tooMuch}${ended}${end.stderr}`,
    };
  };
}

async function pathOf(root: string, tool: string): Promise<string | null> {
  for (const folder of FOLDERS) {
    const path = join(root, folder, tool);
    if (await isPresent(path)) return path;
  }
  return null;
}
