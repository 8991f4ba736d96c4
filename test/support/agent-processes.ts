import { readdirSync, readFileSync } from "node:fs";

/** The agents of the hosts in a folder, or the agent of the host that the folder itself stands for. */
export function agentPids(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isAgentOf(pid, folder));
}

function isAgentOf(pid: number, folder: string): boolean {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    if (!command.includes("agent/main.ts")) return false;
    return readFileSync(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .some((variable) => `${variable}/`.startsWith(`MUSTER_ROOT=${folder}/`));
  } catch {
    // The files of a process in /proc are unreadable if the process has ended since `readdirSync` listed the process.
    return false;
  }
}
