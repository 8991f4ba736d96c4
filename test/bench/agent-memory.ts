import { readFileSync } from "node:fs";
import type { Figure } from "./figure.ts";
import { startMemoryHub } from "./memory-hub.ts";
import { connectAgents, enrollAgents } from "./simulated-agents.ts";

const AGENTS = 1_000;
const SETTLE_MS = 5_000;

/** Measures the memory of a hub process without agents and with a thousand agents, which send heartbeats over mutual TLS. */
export async function measureAgentMemory(stateDir: string, port: number): Promise<Figure[]> {
  const hub = await startMemoryHub(stateDir, port);
  try {
    const agents = await enrollAgents(hub, AGENTS);
    const before = await settledMib(hub.pid);
    const sockets = await connectAgents(agents, hub);
    const after = await settledMib(hub.pid);
    for (const socket of sockets) socket.terminate();
    return [
      {
        name: "hub memory with no agent",
        value: before,
        unit: "MiB",
        note: "resident set, after 1,000 enrollments",
      },
      {
        name: `hub memory with ${AGENTS} agents`,
        value: after,
        unit: "MiB",
        note: "resident set, mutual TLS, heartbeats on",
      },
      {
        name: "hub memory per connected agent",
        value: ((after - before) * 1024) / AGENTS,
        unit: "KiB",
        note: "difference of the two",
      },
    ];
  } finally {
    await hub.stop();
  }
}

async function settledMib(pid: number): Promise<number> {
  await new Promise((done) => setTimeout(done, SETTLE_MS));
  return residentMib(pid);
}

export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no VmRSS`);
  return Number(kib) / 1024;
}
