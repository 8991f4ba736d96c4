/**
 * Hostile clients for the benchmark `hostile.ts`. The hostile clients run in a process with lower priority than the hub, as if they were on other
 * computers. The last line of the output of `attackers.ts` counts the hub's answers to the hostile clients by kind.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect } from "node:net";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { makeRequest } from "../../agent/certificate-request.ts";
import { connectAgent, type HubAddress, type SimulatedAgent } from "./simulated-agents.ts";

interface Orders {
  readonly hub: HubAddress;
  readonly hosts: readonly SimulatedAgent[];
  readonly seconds: number;
}
const { hub, hosts, seconds } = JSON.parse(readFileSync(process.env["ORDERS"] ?? "", "utf8")) as Orders;
const until = performance.now() + seconds * 1_000;
const goesOn = (): boolean => performance.now() < until;
const answers: Record<string, number> = {};
const count = (what: string): void => {
  answers[what] = (answers[what] ?? 0) + 1;
};
const LARGE = `{"a":"\\u0000","b":[${"0,".repeat(520_000)}0]}`;
const DEEP = "[".repeat(500_000) + "]".repeat(500_000);
const ENROLL = "/internal/v1/nodes/enroll";

function ask(
  method: string,
  path: string,
  text?: string,
  as?: SimulatedAgent,
  agent: Agent | false = false,
): Promise<void> {
  return new Promise((resolve) => {
    const identity = as === undefined ? {} : { cert: as.certificate, key: as.key };
    const options = { host: "127.0.0.1", port: hub.port, ca: hub.ca, method, path, agent, ...identity };
    const outgoing = request({ ...options, headers: { "content-type": "application/json" } }, (answer) => {
      count(`${path.split("/").at(-1)?.split("?")[0]} ${answer.statusCode}`);
      answer.resume().once("close", () => resolve());
    });
    outgoing.once("error", () => resolve());
    outgoing.once("close", () => resolve());
    outgoing.end(text);
  });
}

async function whileItGoesOn(turn: () => Promise<void>): Promise<void> {
  while (goesOn()) await turn().catch(() => undefined);
}

const enrollment = (token: string): string =>
  JSON.stringify({
    protocol_version: 1,
    node_id: randomUUID(),
    token,
    csr_pem: "x".repeat(600),
    hostname: "h",
    boot_id: "b",
    agent_version: "1",
    macs: [],
  });

async function halfOpen(): Promise<void> {
  const sockets = Array.from({ length: 50 }, () => connect(hub.port, "127.0.0.1").on("error", () => undefined));
  setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, 8_000).unref();
  await sleep(100);
}

async function flood(host: SimulatedAgent, frame: () => unknown): Promise<void> {
  const socket = await connectAgent(host, hub);
  const closed = new Promise<void>((resolve) => socket.once("close", (code) => resolve(count(`flood closed ${code}`))));
  while (goesOn() && socket.readyState === WebSocket.OPEN) {
    for (let n = 0; n < 100 && socket.bufferedAmount < 1_000_000; n += 1) socket.send(JSON.stringify(frame()));
    await sleep(1);
  }
  socket.terminate();
  await closed;
}

const signal = () => ({
  type: "readiness",
  signal: {
    signal_id: randomUUID(),
    generation: 1,
    boot_id: "b",
    conditions: Array.from({ length: 32 }, () => ({
      type: `x.${randomUUID().replaceAll("-", "_")}`,
      status: "True",
      reason: "Said",
      message: "x".repeat(1_000),
      observed_at: new Date().toISOString(),
    })),
  },
});
const progress = () => ({
  type: "task.progress",
  task_id: randomUUID(),
  epoch: 1,
  seq: 1,
  progress: Array.from({ length: 400 }, () => "\u0000".repeat(30)),
});

setPriority(15);
process.stdout.write(`${JSON.stringify({ listening: "attackers" })}\n`);
const keep = new Agent({ keepAlive: true, maxSockets: 8 });
const [one, two, three, four, five] = hosts as [
  SimulatedAgent,
  SimulatedAgent,
  SimulatedAgent,
  SimulatedAgent,
  SimulatedAgent,
];
await Promise.all([
  ...Array.from({ length: 4 }, () => whileItGoesOn(() => ask("POST", ENROLL, LARGE))),
  whileItGoesOn(() => ask("POST", ENROLL, DEEP)),
  ...Array.from({ length: 4 }, () =>
    whileItGoesOn(() => ask("POST", ENROLL, enrollment("x".repeat(43)), undefined, keep)),
  ),
  whileItGoesOn(halfOpen),
  whileItGoesOn(() => flood(one, signal)),
  whileItGoesOn(() => flood(two, signal)),
  whileItGoesOn(() => flood(three, progress)),
  whileItGoesOn(() =>
    ask(
      "POST",
      `/internal/v1/nodes/${four.nodeId}/certificate`,
      JSON.stringify({ csr_pem: makeRequest(four.key, four.nodeId) }),
      four,
    ),
  ),
  whileItGoesOn(() =>
    ask(
      "POST",
      `/internal/v1/nodes/${five.nodeId}/sessions`,
      JSON.stringify({
        hello: {
          type: "hello",
          protocol_version: 1,
          agent_version: "b",
          node_id: five.nodeId,
          generation: 1,
          boot_id: "b",
          journal: [],
        },
      }),
      five,
    ),
  ),
]);
process.stdout.write(`${JSON.stringify(answers)}\n`, () => process.exit(0));
