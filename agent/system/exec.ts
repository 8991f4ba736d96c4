import { join } from "node:path";
import { isPresent } from "./files.ts";

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
/** A tool is missing or did not end in time. */
class ToolError extends Error {
  override readonly name = "ToolError";
}
export type RunTool = (tool: string, args: readonly string[], timeoutMs: number) => Promise<Ran>;

const MAX_OUTPUT = 1_000_000;

/**
 * Runs a tool of the host without a shell. When the root is a folder, only tools in that folder are run, so that the machine around the
 * folder stays untouched.
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
  return async (tool, args, timeoutMs) => {
    // The library is loaded with the first tool: an idle agent runs no tool and needs less memory.
    const { execa } = await import("execa");
    const result = await execa(await resolve(tool), [...args], {
      reject: false,
      timeout: timeoutMs,
      stdin: "ignore",
      maxBuffer: MAX_OUTPUT,
      env: { LC_ALL: "C", ...(root === "/" ? {} : { MUSTER_ROOT: root }) },
    });
    if (result.timedOut) throw new ToolError(`${tool} did not end within ${timeoutMs} ms.`);
    if (result.exitCode === undefined) throw new ToolError(`${tool} could not be run: ${result.shortMessage}`);
    return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr.slice(-2_000) };
  };
}
