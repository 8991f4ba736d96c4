import { readdirSync, readFileSync } from "node:fs";

export function agentPids(hostsDir: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isAgentOf(pid, hostsDir));
}

function isAgentOf(pid: number, hostsDir: string): boolean {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    if (!command.includes("agent/main.ts")) return false;
    return readFileSync(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .some((variable) => variable.startsWith(`MUSTER_ROOT=${hostsDir}/`));
  } catch {
    // The files of a process in /proc are unreadable if the process has ended since `readdirSync` listed the process.
    return false;
  }
}
