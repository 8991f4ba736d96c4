import { X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { type WebSocket, WebSocketServer } from "ws";
import { EnrollRequest, type EnrollResponse, RenewRequest } from "../../../shared/api/enroll.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { AgentFrame, type Hello, type HubFrame, type Welcome } from "../../../shared/protocol/frames.ts";
import { TestAuthority } from "./authority.ts";
import { OrderSigner } from "./orders.ts";

type AgentFrameOf<T extends AgentFrame["type"]> = Extract<AgentFrame, { type: T }>;
interface Refusal {
  readonly status: number;
  readonly code: string;
}

/**
 * A simulated hub for tests of the agent, which speaks the hub's side of the agent protocol and has no database. A test sets the answers and faults
 * of the simulated hub through public members.
 */
export class ScriptedHub {
  readonly authority: TestAuthority;
  readonly signer = new OrderSigner();
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true });
  #open: { send(text: string): void; close(code: number): void } | null = null;
  /** The frames that the simulated hub returns to the agent's next long poll. */
  #polled: HubFrame[] = [];
  #epoch = 0;

  readonly enrollments: EnrollRequest[] = [];
  renewals = 0;
  /** The query of the last renewal. */
  renewalQuery: string | undefined;
  readonly hellos: Hello[] = [];
  readonly frames: AgentFrame[] = [];
  readonly closes: number[] = [];
  readonly serials: string[] = [];
  /** The number of next enrollments whose answer gets lost after the simulated hub has issued the certificate. */
  loseEnrollments = 0;
  refuseEnrollments: Refusal | null = null;
  refuseRenewals: Refusal | null = null;
  /** If `blockSockets` is true, the simulated hub acts like a proxy that refuses WebSockets with an HTML page. */
  blockSockets = false;
  refuseSockets: Refusal | null = null;
  silent = false;
  acknowledgeResults = true;
  heartbeatTtlMs = 500;
  certificateLifeMs = 24 * 3_600_000;
  clockSkewMs = 0;

  private constructor(authority: TestAuthority, server: Server, nodeId: NodeId, generation: number) {
    this.authority = authority;
    this.#server = server;
    this.nodeId = nodeId;
    this.generation = generation;
    server.on("request", (request, response) => {
      this.#answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
    });
    server.on("upgrade", (request, socket, head) => {
      socket.on("error", () => undefined);
      // A hub accepts an agent's expired certificate only for the renewal of the certificate.
      const { validToDate } = new X509Certificate((socket as TLSSocket).getPeerCertificate().raw);
      const expired = validToDate.getTime() < Date.now() ? { status: 403, code: "certificate_rejected" } : null;
      const refusal = this.refuseSockets ?? expired;
      if (this.blockSockets) socket.end("HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n<html>no</html>");
      else if (refusal !== null)
        socket.end(`HTTP/1.1 ${refusal.status} No\r\nconnection: close\r\n\r\n${problem(refusal)}`);
      else this.#sockets.handleUpgrade(request, socket, head, (ws) => this.#accept(ws, request));
    });
  }

  static async start(
    nodeId: NodeId,
    options: { generation?: number; serverNotAfter?: Date } = {},
  ): Promise<ScriptedHub> {
    const authority = await TestAuthority.make();
    const tls = await authority.server(options.serverNotAfter);
    const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new ScriptedHub(authority, server, nodeId, options.generation ?? 1);
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  said<T extends AgentFrame["type"]>(type: T): AgentFrameOf<T>[] {
    return this.frames.filter((frame): frame is AgentFrameOf<T> => frame.type === type);
  }

  send(frame: HubFrame): void {
    this.sendText(JSON.stringify(frame));
  }
  sendText(text: string): void {
    this.#open?.send(text);
  }
  queue(frame: HubFrame): void {
    this.#polled.push(frame);
  }
  closeSocket(code: number): void {
    this.#open?.close(code);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: WebSocket, request: IncomingMessage): void {
    const certificate = new X509Certificate((request.socket as TLSSocket).getPeerCertificate().raw);
    this.serials.push(certificate.serialNumber);
    socket.on("close", (code) => this.closes.push(code));
    if (certificate.subjectAltName !== `URI:spiffe://muster/node/${this.nodeId}`) {
      socket.close(4003, "not this node");
      return;
    }
    this.#open = { send: (text) => socket.send(text), close: (code) => socket.close(code) };
    socket.on("message", (data) => {
      for (const answer of this.#take(AgentFrame.parse(JSON.parse(data.toString()))))
        if (!this.silent) socket.send(JSON.stringify(answer));
    });
  }

  #take(frame: AgentFrame): HubFrame[] {
    this.frames.push(frame);
    switch (frame.type) {
      case "hello":
        return [this.#welcome(frame)];
      case "heartbeat":
        return [{ type: "heartbeat.ack", seq: frame.seq, heartbeat_ttl_ms: this.heartbeatTtlMs }];
      case "readiness":
        return [{ type: "readiness.ack", signal_id: frame.signal.signal_id }];
      case "task.result":
        return this.acknowledgeResults ? [{ type: "task.result_ack", task_id: frame.task_id, epoch: frame.epoch }] : [];
      default:
        return [];
    }
  }

  #welcome(hello: Hello): Welcome {
    this.hellos.push(hello);
    this.#epoch += 1;
    return {
      type: "welcome",
      protocol_version: 1,
      session_epoch: this.#epoch,
      heartbeat_ttl_ms: this.heartbeatTtlMs,
      hub_version: "test",
      hub_time: new Date(Date.now() + this.clockSkewMs).toISOString(),
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readJson(request);
    const [path = "", query] = (request.url ?? "").split("?");
    const answer = (value: unknown) => response.end(JSON.stringify(value));
    if (path === "/internal/v1/nodes/enroll") {
      this.enrollments.push(EnrollRequest.parse(body));
      if (this.refuseEnrollments !== null)
        return void response.writeHead(this.refuseEnrollments.status).end(problem(this.refuseEnrollments));
      const enrolled = await this.#enroll(EnrollRequest.parse(body).csr_pem);
      this.loseEnrollments -= 1;
      if (this.loseEnrollments >= 0) return void request.socket.destroy();
      answer(enrolled);
    } else if (path.endsWith("/certificate")) {
      this.renewals += 1;
      this.renewalQuery = query;
      if (this.refuseRenewals !== null)
        return void response.writeHead(this.refuseRenewals.status).end(problem(this.refuseRenewals));
      answer(await this.#enroll(RenewRequest.parse(body).csr_pem));
    } else if (path.endsWith("/sessions")) {
      const [welcome] = this.#take(AgentFrame.parse((body as { hello: unknown }).hello));
      answer({ welcome });
    } else if (path.endsWith("/frames")) {
      const { frames } = body as { frames: unknown[] };
      answer({ frames: frames.flatMap((frame) => this.#take(AgentFrame.parse(frame))) });
    } else {
      if (this.#polled.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      answer({ frames: [{ type: "from_the_future" }, ...this.#polled.splice(0)] });
    }
  }

  async #enroll(csrPem: string): Promise<EnrollResponse> {
    const notAfter = new Date(Date.now() + this.certificateLifeMs);
    return {
      node_id: this.nodeId,
      generation: this.generation,
      certificate_pem: await this.authority.client(csrPem, notAfter),
      ca_pem: this.authority.caPem,
      not_after: notAfter.toISOString(),
      task_signing_public_key: this.signer.publicKey,
    };
  }
}

const problem = ({ status, code }: Refusal): string =>
  JSON.stringify({ type: "about:blank", title: "No", status, code, detail: "The test says no." });

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return chunks.length === 0 ? null : JSON.parse(Buffer.concat(chunks).toString());
}
