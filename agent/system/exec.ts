import { join } from "node:path";
import { isPresent } from "./files.ts";

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
/** Thrown when a tool of the host is missing or did not end in time. */
class ToolError extends Error {
  override readonly name = "ToolError";
}
/** Runs a tool of the host. The tool reads `input` from its standard input; without `input`, the standard input is empty. */
export type RunTool = (tool: string, args: readonly string[], timeoutMs: number, input?: Uint8Array) => Promise<Ran>;

const MAX_OUTPUT = 1_000_000;

/**
 * Runs a tool of the host, without a shell. When a folder stands for the host, the agent runs only tools in that folder, so that the machine itself
 * stays untouched.
 */
export function toolsOf(root: string): RunTool {
  const resolve = async (tool: string): Promise<string> => {
    if (root === "/") return tool;
    for (const folder of ["usr/bin", "usr/sbin"]) {
      const path = join(root, folder, tool);
      if (await isPresent(path)) return path;
    }
    throw new ToolError(`There is no ${tool} below ${root}.`);
  };
  return async (tool, args, timeoutMs, input) => {
    // The agent loads the library `execa` when it runs its first tool, because an idle agent runs no tool and needs less memory without `execa`.
    const { execa } = await import("execa");
    const result = await execa(await resolve(tool), [...args], {
      reject: false,
      timeout: timeoutMs,
      ...(input === undefined ? { stdin: "ignore" as const } : { input }),
      maxBuffer: MAX_OUTPUT,
      env: { LC_ALL: "C", ...(root === "/" ? {} : { MUSTER_ROOT: root }) },
    });
    if (result.timedOut) throw new ToolError(`${tool} did not end within ${timeoutMs} ms.`);
    if (result.exitCode === undefined) throw new ToolError(`${tool} could not be run: ${result.shortMessage}`);
    return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr.slice(-2_000) };
  };
}
