import { type ChildProcess, spawn } from "node:child_process";

export interface HubCommand {
  readonly process: ChildProcess;
  readonly ended: Promise<{ status: number | null; told: string }>;
}

/** Runs a command of the hub's program, such as `backup`, with the given settings. */
export function runHubCommand(words: readonly string[], env: Readonly<Record<string, string>>): HubCommand {
  const child = spawn(process.execPath, ["hub/main.ts", ...words], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let told = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      told += text;
    });
  const ended = new Promise<{ status: number | null; told: string }>((resolve) => {
    child.once("close", (status) => resolve({ status, told }));
  });
  return { process: child, ended };
}
