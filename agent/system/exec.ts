import { join } from "node:path";
import { isPresent } from "./files.ts";
import { GRACE_MS, type HungTool, runToolAt, type ToolEnd } from "./tool-process.ts";

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
class ToolError extends Error {
  override readonly name = "ToolError";
}
export type RunTool = (tool: string, args: readonly string[], timeoutMs: number, input?: Uint8Array) => Promise<Ran>;

const MAX_OUTPUT = 1_000_000;
const MAX_STDERR = 2_000;

/**
 * Returns the function that runs a tool without a shell, and throws an error if the tool does not end by itself. If a folder stands for the host, for
 * example in a test, the returned function runs only tools in this folder. `graceMs` is the time that a tool has to end after SIGTERM, and again
 * after SIGKILL.
 */
export function toolsOf(root: string, graceMs = GRACE_MS): RunTool {
  const resolve = async (tool: string): Promise<string> => {
    if (root === "/") return tool;
    for (const folder of ["usr/bin", "usr/sbin"]) {
      const path = join(root, folder, tool);
      if (await isPresent(path)) return path;
    }
    throw new ToolError(`There is no ${tool} below ${root}.`);
  };
  return async (tool, args, timeoutMs, input) => {
    const bounds = { timeoutMs, graceMs, mostOutput: MAX_OUTPUT, mostStderr: MAX_STDERR };
    const end = await runToolAt(root, await resolve(tool), args, input === undefined ? bounds : { ...bounds, input });
    const fault = faultOf(end, tool, timeoutMs);
    if (end.kind !== "ended" || end.exitCode === null || fault !== null) throw new ToolError(fault ?? tool);
    return {
      exitCode: end.exitCode,
      stdout: withoutLastNewline(end.stdout.toString("utf8")),
      stderr: withoutLastNewline(end.stderr),
    };
  };
}

/** Says why the output of a tool cannot be used, or returns null for a tool that ended by itself. */
function faultOf(end: ToolEnd, tool: string, timeoutMs: number): string | null {
  switch (end.kind) {
    case "not_started":
      return end.message;
    case "hung": {
      const late = `${tool} did not end within ${timeoutMs} ms.`;
      return end.isAlive ? `${late} ${stuckText(end)}` : late;
    }
    case "ended":
      if (end.wroteTooMuch) return `${tool} wrote more than ${MAX_OUTPUT} bytes and was stopped.`;
      return end.signal === null ? null : `${tool} was ended by ${end.signal}. ${end.stderr}`.trim();
  }
}

const stuckText = ({ pid, state, wchan }: HungTool): string =>
  `Its process ${pid} is stuck in the kernel (state ${state}${wchan === "" ? "" : `, in ${wchan}`}) and survived SIGKILL. The agent waits for it no longer. Restart the host if the process stays.`;

const withoutLastNewline = (text: string): string => text.replace(/\r?\n$/, "");
