import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import type { Hello, Welcome } from "../shared/protocol/frames.ts";
import { AGENT_COMES_BACK, CLOSE_CODES, type CloseReason, MAX_FRAME_BYTES } from "../shared/protocol/version.ts";
import { type Channel, type ChannelEnd, ChannelRefused, type TakeFrame } from "./channel.ts";
import { parseFrame } from "./frame.ts";
import { explain } from "./https.ts";
import type { Identity } from "./identity.ts";
import type { Log } from "./log.ts";

const CONNECT_TIMEOUT_MS = 20_000;
const WELCOME_TIMEOUT_MS = 20_000;
const CLOSE_WITHIN_MS = 2_000;
/**
 * The number of bytes waiting to be sent above which the agent considers its connection to the hub lost. The agent repeats unacknowledged frames over
 * its next connection to the hub.
 */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;
const CLOSED_FOR = {
  stopped: { code: 1000, reason: "the agent stops" },
  renewed: { code: AGENT_COMES_BACK, reason: "renewed" },
};

export interface OpenOptions {
  readonly hubUrl: URL;
  readonly identity: Identity;
  readonly hello: Hello;
  readonly take: TakeFrame;
  readonly log: Log;
}

/** Opens a WebSocket to the hub over mutual TLS, and sends the hello frame. Rejects with ChannelRefused when the hub refuses the agent's identity. */
export async function openSocket(options: OpenOptions): Promise<Channel> {
  const { hubUrl, identity, hello, log } = options;
  const url = new URL(`/internal/v1/nodes/${identity.nodeId}/connect`, hubUrl);
  url.protocol = "wss:";
  const socket = new WebSocket(url, {
    ...identity.tls,
    handshakeTimeout: CONNECT_TIMEOUT_MS,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
  });
  let lastHeard = performance.now();
  /** The newest time to live of heartbeats, which the hub raises while more hosts connect. */
  let ttlMs = 0;
  let closedFor: "stopped" | "renewed" | null = null;
  let welcomed: ((welcome: Welcome) => void) | null = null;
  const ended = new Promise<ChannelEnd>((resolve) =>
    socket.once("close", (code, reason) =>
      resolve({ reason: closedFor ?? reasonOf(code), message: `${code} ${reason.toString()}`.trim() }),
    ),
  );
  const opened = new Promise<Welcome>((resolve, reject) => {
    welcomed = resolve;
    socket.on("error", (error) => reject(new Error(explain(error), { cause: error })));
    socket.once("unexpected-response", (_request, response) => {
      refusalIn(response)
        .then(reject, reject)
        .finally(() => socket.terminate());
    });
    void ended.then((end) =>
      reject(new Error(`The hub closed the connection before its welcome: ${end.message}`, { cause: end })),
    );
    setTimeout(
      () => reject(new Error("The hub sent no welcome in time.")),
      CONNECT_TIMEOUT_MS + WELCOME_TIMEOUT_MS,
    ).unref();
  });
  socket.once("open", () => socket.send(JSON.stringify(hello)));
  socket.on("message", (data) => {
    lastHeard = performance.now();
    const frame = parseFrame(data.toString());
    if (frame === null) log.warn("a frame of the hub was not understood and is ignored");
    else if (frame.type === "welcome") {
      ttlMs = frame.heartbeat_ttl_ms;
      welcomed?.(frame);
    } else {
      if (frame.type === "heartbeat.ack") ttlMs = frame.heartbeat_ttl_ms;
      options.take(frame);
    }
  });
  const welcome = await opened.catch((error: unknown) => {
    socket.terminate();
    throw error;
  });
  return {
    kind: "websocket",
    welcome,
    ended,
    send: (frame) => {
      if (socket.readyState !== WebSocket.OPEN) return;
      socket.send(JSON.stringify(frame));
      if (socket.bufferedAmount > MAX_BUFFERED_BYTES) socket.terminate();
      // After a silence of twice the heartbeat's time to live, the agent ends its connection to the hub, even without an error of TCP.
      if (performance.now() - lastHeard > 2 * ttlMs) socket.terminate();
    },
    close: (why) => {
      socket.close(CLOSED_FOR[why].code, CLOSED_FOR[why].reason);
      closedFor = why;
      // The agent does not wait long for the hub's answer to the close of the WebSocket.
      setTimeout(() => socket.terminate(), CLOSE_WITHIN_MS).unref();
    },
  };
}

function reasonOf(code: number): ChannelEnd["reason"] {
  const known = Object.entries(CLOSE_CODES).find(([, close]) => close.code === code);
  return known === undefined ? "lost" : (known[0] as CloseReason);
}

async function refusalIn(response: IncomingMessage): Promise<Error> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_REFUSAL_BYTES) return new Error("The answer to the WebSocket's opening is too large.");
    chunks.push(chunk);
  }
  return refusalOf(response.statusCode ?? 0, Buffer.concat(chunks).toString("utf8"));
}

/**
 * Turns an HTTP error response to the agent's WebSocket request into an error. An error response in the hub's format is a refusal by the hub; any
 * other response comes from a proxy. After a proxy's error response, the agent's next attempt may still reach the hub.
 */
function refusalOf(status: number, body: string): Error {
  try {
    const problem: unknown = JSON.parse(body);
    if (typeof problem === "object" && problem !== null && "code" in problem && "detail" in problem)
      return new ChannelRefused(String(problem.code), String(problem.detail));
  } catch {
    // A response to the agent's WebSocket request that is not JSON comes from a proxy.
  }
  return new Error(
    `The way to the hub answered ${status} with a page that is not the hub's. Is there a proxy in between?`,
  );
}
