/** A simulated agent, which sends the frames that a test passes to `send`, and stores the hub's frames. */
import { WebSocket } from "ws";
import { type AgentFrame, type Hello, HubFrame } from "../../shared/protocol/frames.ts";
import type { GatewayRig, Identity } from "./gateway-rig.ts";
import { until } from "./until.ts";

export type HubFrameOf<T extends HubFrame["type"]> = Extract<HubFrame, { type: T }>;

export const helloOf = (identity: Pick<Identity, "nodeId" | "generation">, more: Partial<Hello> = {}): Hello => ({
  type: "hello",
  protocol_version: 1,
  agent_version: "1.0.0",
  node_id: identity.nodeId,
  generation: identity.generation,
  boot_id: "boot-1",
  journal: [],
  ...more,
});

/** The port of the hub and the local address of an agent's connection, by default the first hub and 127.0.0.1. */
interface Route {
  readonly port?: number;
  readonly from?: string;
}

export class SocketAgent {
  readonly frames: HubFrame[] = [];
  readonly #socket: WebSocket;
  readonly #seen = new Set<HubFrame>();
  closed: { code: number; reason: string } | null = null;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => this.frames.push(HubFrame.parse(JSON.parse(data.toString()))));
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
    socket.on("error", () => undefined);
  }

  /** Opens the agent's WebSocket without sending a frame. Rejects with `HTTP <status> <code>` when the hub refuses the upgrade to a WebSocket. */
  static async open(
    rig: GatewayRig,
    identity: { nodeId: string; certPem?: string; keyPem?: string },
    { port = rig.listener.port, from = "127.0.0.1" }: Route = {},
  ): Promise<SocketAgent> {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/internal/v1/nodes/${identity.nodeId}/connect`, {
      ca: rig.ca.caPem,
      localAddress: from,
      perMessageDeflate: false,
      ...(identity.certPem === undefined ? {} : { cert: identity.certPem, key: identity.keyPem }),
    });
    const agent = new SocketAgent(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
      socket.once("unexpected-response", (_request, response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          const { code } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { code: string };
          reject(new Error(`HTTP ${response.statusCode} ${code}`));
          socket.terminate();
        });
      });
    });
    return agent;
  }

  static async connect(
    rig: GatewayRig,
    identity: Identity,
    { hello, ...route }: { hello?: Partial<Hello> } & Route = {},
  ): Promise<SocketAgent> {
    const agent = await SocketAgent.open(rig, identity, route);
    agent.send(helloOf(identity, hello));
    await agent.next("welcome");
    return agent;
  }

  send(frame: AgentFrame): void {
    this.#socket.send(JSON.stringify(frame));
  }
  sendRaw(text: string): void {
    this.#socket.send(text);
  }

  /** Waits for the next frame of the given type from the hub. `next` returns each frame of the hub only once. */
  async next<T extends HubFrame["type"]>(type: T): Promise<HubFrameOf<T>> {
    const frame = await until(`a ${type} frame`, () =>
      this.frames.find((one): one is HubFrameOf<T> => one.type === type && !this.#seen.has(one)),
    );
    this.#seen.add(frame);
    return frame;
  }

  /** Resolves when the hub has handled all frames of the simulated agent, which the hub handles in order. */
  async settled(): Promise<void> {
    const seq = Math.floor(Math.random() * 1e9);
    this.send({ type: "heartbeat", seq });
    await until("the hub has taken all frames", () =>
      this.frames.some((frame) => frame.type === "heartbeat.ack" && frame.seq === seq) ? true : undefined,
    );
  }

  async closing(): Promise<{ code: number; reason: string }> {
    return until("the hub closes the socket", () => this.closed ?? undefined);
  }

  async close(code = 1000): Promise<void> {
    this.#socket.close(code, "done");
    await this.closing();
  }
  /** Ends the simulated agent's connection without a WebSocket close frame, as a power cut of the host does. */
  cut(): void {
    this.#socket.terminate();
  }
}
