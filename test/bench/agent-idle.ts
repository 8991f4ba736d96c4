import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { WebSocketServer } from "ws";
import { AGENT } from "../../packaging/packages.ts";
import { HostFolder } from "../fakes/hub/host-folder.ts";
import { until } from "../support/until.ts";
import type { Figure } from "./figure.ts";
import { type MemoryHub, startMemoryHub } from "./memory-hub.ts";
import { cpuMs } from "./processor-time.ts";

/** How long the agent may take to send its inventory and finish its start, before the benchmark measures it. */
const SETTLE_MS = 10_000;
const IDLE_MS = 60_000;

interface Idle {
  readonly residentMib: number;
  readonly anonymousMib: number;
  readonly cpuMs: number;
}

/** Besides the agent, the benchmark measures Node.js with only one open WebSocket: the minimum for any agent on Node.js. */
export async function measureAgentIdle(stateDir: string, port: number): Promise<Figure[]> {
  const unpacked = join(stateDir, "package");
  await unpackAgent(unpacked);
  const hub = await startMemoryHub(join(stateDir, "idle"), port);
  const host = new HostFolder();
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const ended: (() => void)[] = [];
  try {
    const agent = await startAgent(unpacked, hub, host);
    ended.push(agent.stop);
    const bare = await startBare(unpacked, server);
    ended.push(bare.stop);
    const [ours, floor] = await Promise.all([idle(agent.pid), idle(bare.pid)]);
    return [...figures("agent, idle", ours), ...figures("bare Node.js with one WebSocket, idle", floor)];
  } finally {
    for (const stop of ended) stop();
    server.close();
    host.remove();
    await hub.stop();
  }
}

const figures = (name: string, { residentMib, anonymousMib, cpuMs }: Idle): Figure[] => [
  { name: `${name}: resident memory`, value: residentMib, unit: "MiB", note: "after a minute" },
  { name: `${name}: of that its own`, value: anonymousMib, unit: "MiB", note: "anonymous; the rest is files" },
  { name: `${name}: processor time`, value: cpuMs, unit: "ms", note: "in that minute" },
];

async function unpackAgent(target: string): Promise<void> {
  const out = join(target, "..", "built");
  await execa(process.execPath, [
    ...["packaging/main.ts", "--only", AGENT.name, "--compress", "zstd", "--out", out],
    ...["--signing-key", join(out, "key.pem")],
  ]);
  await execa("sh", ["-c", `dpkg-deb -x ${out}/${AGENT.name}_*.deb ${target}`]);
}

interface Running {
  readonly pid: number;
  stop(): void;
}

/** In the start script of the agent's package, the benchmark changes only the install path. */
async function startAgent(unpacked: string, hub: MemoryHub, host: HostFolder): Promise<Running> {
  const command = join(unpacked, "usr/bin/muster-agent");
  const text = readFileSync(command, "utf8");
  writeFileSync(command, text.replaceAll("/usr/lib/muster", join(unpacked, "usr/lib/muster")));
  const { nodeId, token } = await hub.addNode("gpu-01");
  host.write("etc/muster/ca.pem", hub.ca);
  host.write("etc/muster/enrollment-token", token, 0o600);
  host.write(
    "etc/muster/agent.json",
    JSON.stringify({
      hub_url: `https://127.0.0.1:${hub.port}`,
      node_id: nodeId,
      generation: 1,
      enrollment_token_file: "/etc/muster/enrollment-token",
      ca_file: "/etc/muster/ca.pem",
      task_signing_public_key: hub.taskSigningPublicKey,
    }),
  );
  const agent = execa(command, { env: { MUSTER_ROOT: host.root }, stdin: "ignore", reject: false });
  let said = "";
  agent.stderr.on("data", (chunk) => {
    said += chunk;
  });
  await until("the agent is connected", () => (said.includes('"connected"') ? true : undefined));
  return running(agent);
}

async function startBare(unpacked: string, server: WebSocketServer): Promise<Running> {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const home = join(unpacked, "usr/lib/muster", AGENT.home);
  const connected = once(server, "connection");
  const bare = execa(join(home, "runtime/node"), ["--eval", `new (require("ws"))("ws://127.0.0.1:${address.port}")`], {
    cwd: home,
    stdin: "ignore",
    reject: false,
  });
  await connected;
  return running(bare);
}

function running({ pid, kill }: { pid?: number; kill(): boolean }): Running {
  if (pid === undefined) throw new Error("the process could not be started");
  return { pid, stop: () => void kill() };
}

async function idle(pid: number): Promise<Idle> {
  await sleep(SETTLE_MS);
  const before = cpuMs(pid);
  await sleep(IDLE_MS);
  const memory = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(memory)?.[1]) / 1024;
  return { residentMib: mib("Rss"), anonymousMib: mib("Anonymous"), cpuMs: cpuMs(pid) - before };
}
