import { readFileSync } from "node:fs";
import { request } from "node:https";
import { WebSocket } from "ws";
import { makeKey, makeRequest } from "../../agent/certificate-request.ts";
import { EnrollResponse } from "../../shared/api/enroll.ts";
import type { NodeId } from "../../shared/ids.ts";
import { PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import type { Figure } from "./figure.ts";
import { type MemoryHub, startMemoryHub } from "./memory-hub.ts";

const AGENTS = 1_000;
const SETTLE_MS = 5_000;

interface SimulatedAgent {
  readonly nodeId: NodeId;
  readonly key: string;
  readonly certificate: string;
}

/** Resident memory of a hub process with no agent and with a thousand, each a WebSocket over mutual TLS that beats. */
export async function measureAgentMemory(stateDir: string, port: number): Promise<Figure[]> {
  const hub = await startMemoryHub(stateDir, port);
  try {
    const agents = await enrollAll(hub);
    const before = await settledRss(hub.pid);
    const sockets = await connectAll(agents, hub);
    const after = await settledRss(hub.pid);
    for (const socket of sockets) socket.terminate();
    return [
      {
        name: "hub memory with no agent",
        value: before / 1024,
        unit: "MiB",
        note: "resident set, after 1,000 enrollments",
      },
      {
        name: `hub memory with ${AGENTS} agents`,
        value: after / 1024,
        unit: "MiB",
        note: "resident set, mutual TLS, heartbeats on",
      },
      {
        name: "hub memory per connected agent",
        value: (after - before) / AGENTS,
        unit: "KiB",
        note: "difference of the two",
      },
    ];
  } finally {
    await hub.stop();
  }
}

async function settledRss(pid: number): Promise<number> {
  await new Promise((done) => setTimeout(done, SETTLE_MS));
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no VmRSS`);
  return Number(kib);
}

async function enrollAll({ port, ca, addNode }: MemoryHub): Promise<SimulatedAgent[]> {
  const agents: SimulatedAgent[] = [];
  for (let index = 0; index < AGENTS; index += 1) {
    const { nodeId, token } = await addNode(`bench-${index}`);
    const key = makeKey();
    const body = {
      protocol_version: PROTOCOL_VERSION,
      node_id: nodeId,
      token,
      csr_pem: makeRequest(key, nodeId),
      hostname: `bench-${index}`,
      boot_id: nodeId,
      agent_version: "bench",
      macs: [],
    };
    agents.push({ nodeId, key, certificate: EnrollResponse.parse(await post(port, ca, body)).certificate_pem });
  }
  return agents;
}

function post(port: number, ca: string, body: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        ca,
        path: "/internal/v1/nodes/enroll",
        method: "POST",
        headers: { "content-type": "application/json" },
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        answer.on("end", () =>
          answer.statusCode === 200
            ? resolve(JSON.parse(text))
            : reject(new Error(`enrollment answered ${answer.statusCode}: ${text}`)),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}

async function connectAll(agents: readonly SimulatedAgent[], hub: MemoryHub): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  for (let at = 0; at < agents.length; at += 20)
    sockets.push(...(await Promise.all(agents.slice(at, at + 20).map((agent) => connect(agent, hub)))));
  return sockets;
}

function connect(agent: SimulatedAgent, { port, ca }: MemoryHub): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/internal/v1/nodes/${agent.nodeId}/connect`, {
      ca,
      cert: agent.certificate,
      key: agent.key,
      perMessageDeflate: false,
    });
    socket.once("error", reject);
    socket.once("open", () =>
      socket.send(
        JSON.stringify({
          type: "hello",
          protocol_version: PROTOCOL_VERSION,
          agent_version: "bench",
          node_id: agent.nodeId,
          generation: 1,
          boot_id: agent.nodeId,
          journal: [],
        }),
      ),
    );
    socket.once("message", () => {
      let seq = 0;
      const beat = setInterval(() => socket.send(JSON.stringify({ type: "heartbeat", seq: ++seq })), 5_000);
      socket.once("close", () => clearInterval(beat));
      resolve(socket);
    });
  });
}
