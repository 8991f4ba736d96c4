import { request } from "node:https";
import { WebSocket } from "ws";
import { makeKey, makeRequest } from "../../agent/certificate-request.ts";
import { EnrollResponse } from "../../shared/api/enroll.ts";
import type { NodeId } from "../../shared/ids.ts";
import { PROTOCOL_VERSION } from "../../shared/protocol/version.ts";

export interface SimulatedAgent {
  readonly nodeId: NodeId;
  readonly key: string;
  readonly certificate: string;
}

export interface HubAddress {
  readonly port: number;
  readonly ca: string;
}

type EnrollingHub = HubAddress & {
  addNode(hostname: string): Promise<{ nodeId: NodeId; token: string }>;
};

export async function enrollAgents(hub: EnrollingHub, count: number): Promise<SimulatedAgent[]> {
  const agents: SimulatedAgent[] = [];
  for (let index = 0; index < count; index += 1) {
    const { nodeId, token } = await hub.addNode(`bench-${index}`);
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
    agents.push({ nodeId, key, certificate: EnrollResponse.parse(await post(hub, body)).certificate_pem });
  }
  return agents;
}

function post({ port, ca }: HubAddress, body: unknown): Promise<unknown> {
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

export async function connectAgents(agents: readonly SimulatedAgent[], hub: HubAddress): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  for (let at = 0; at < agents.length; at += 20)
    sockets.push(...(await Promise.all(agents.slice(at, at + 20).map((agent) => connectAgent(agent, hub)))));
  return sockets;
}

/**
 * Resolves with the agent's WebSocket when the hub has sent the frame `welcome`. A connected simulated agent sends a heartbeat every five seconds.
 */
export function connectAgent(agent: SimulatedAgent, { port, ca }: HubAddress): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/internal/v1/nodes/${agent.nodeId}/connect`, {
      ca,
      cert: agent.certificate,
      key: agent.key,
      perMessageDeflate: false,
    });
    socket.on("error", reject);
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
    socket.once("close", (code) => reject(new Error(`closed with ${code} before the welcome`)));
    socket.once("message", () => {
      let seq = 0;
      const beat = setInterval(() => socket.send(JSON.stringify({ type: "heartbeat", seq: ++seq })), 5_000);
      socket.once("close", () => clearInterval(beat));
      resolve(socket);
    });
  });
}
