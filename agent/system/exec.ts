import { join } from "node:path";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { isPresent } from "./files.ts";

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

/** Returns the function that runs a tool without a shell. If a folder stands for the host, the returned function runs only tools in this folder. */
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
    // An idle agent runs no tool, so the agent loads the library `execa` only for the first tool, to save memory.
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
    // A cut may remove the name before a secret, by which the secret is found, so the secrets go before the first cut.
    const stderr = withoutCredentials(result.stderr).slice(-MAX_STDERR);
    return { exitCode: result.exitCode, stdout: result.stdout, stderr };
  };
}
