import { z } from "zod";
import { type AgentFrame, type HubFrame, Welcome } from "../shared/protocol/frames.ts";
import { type Channel, type ChannelEnd, ChannelRefused } from "./channel.ts";
import { frameOf } from "./frame.ts";
import { askHub, HubRefusal } from "./https.ts";
import { messageOf } from "./message-of.ts";
import type { OpenOptions } from "./socket.ts";

const WAIT_MS = 25_000;
/** The time, in milliseconds, after which the agent ends a long poll and tries a WebSocket. */
const RETRY_SOCKET_MS = 10 * 60_000;
/**
 * How many outgoing frames the agent keeps while the hub does not answer. How many outgoing frames the agent keeps at most; the agent repeats
 * important frames anyway.
 */
const MAX_WAITING = 100;
const Welcomed = z.object({ welcome: Welcome });
/** The agent parses frames one by one, so that an unknown frame does not affect the other frames of an answer. */
const Frames = z.object({ frames: z.array(z.unknown()) });

/**
 * Opens a long poll, by which HTTP requests carry the agent's frames if no WebSocket reaches the hub. After a while the agent ends a long poll to try
 * a WebSocket.
 */
export async function openLongPoll(options: OpenOptions): Promise<Channel> {
  const { hubUrl, identity, hello } = options;
  const base = `/internal/v1/nodes/${identity.nodeId}`;
  const ask = { method: "POST" as const, path: `${base}/sessions`, body: { hello } };
  const { welcome } = await askHub(hubUrl, identity.tls, ask, Welcomed).catch((error: unknown) => {
    throw error instanceof HubRefusal ? new ChannelRefused(error.code, error.message) : error;
  });
  const poll = new Poll(options, base, welcome);
  return {
    kind: "long_poll",
    welcome,
    ended: poll.run(),
    send: (frame) => poll.send(frame),
    close: (why) => poll.stop(why),
  };
}

class Poll {
  readonly #options: OpenOptions;
  readonly #base: string;
  readonly #welcome: Welcome;
  readonly #stop = new AbortController();
  #waiting = 0;
  #over = false;
  #stoppedFor: "stopped" | "renewed" = "stopped";
  #sending: Promise<void> = Promise.resolve();

  constructor(options: OpenOptions, base: string, welcome: Welcome) {
    this.#options = options;
    this.#base = base;
    this.#welcome = welcome;
  }

  /** Stops the long poll after it has sent the frames that wait, for example the last frames of a task. */
  stop(why: "stopped" | "renewed"): void {
    this.#stoppedFor = why;
    void this.#sending.finally(() => this.#stop.abort());
  }

  /** The agent's next connection to the hub, perhaps with another certificate, repeats the frames that the ended long poll did not send. */
  run(): Promise<ChannelEnd> {
    return this.#poll().finally(() => {
      this.#over = true;
    });
  }

  async #poll(): Promise<ChannelEnd> {
    const { hubUrl, identity } = this.#options;
    const until = performance.now() + RETRY_SOCKET_MS;
    const path = `${this.#base}/tasks/wait?session_epoch=${this.#welcome.session_epoch}&timeout_ms=${WAIT_MS}`;
    try {
      while (!this.#stop.signal.aborted) {
        if (performance.now() >= until) return { reason: "retry_socket", message: "the WebSocket is tried again" };
        const ask = { method: "GET" as const, path, timeoutMs: WAIT_MS + 15_000, signal: this.#stop.signal };
        this.#take((await askHub(hubUrl, identity.tls, ask, Frames)).frames);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted)
        return {
          reason: error instanceof HubRefusal && error.code === "rate_limited" ? "rate_limited" : "lost",
          message: messageOf(error),
        };
    }
    return { reason: this.#stoppedFor, message: "the agent has closed it" };
  }

  send(frame: AgentFrame): void {
    if (this.#waiting >= MAX_WAITING) return;
    this.#waiting += 1;
    this.#sending = this.#sending
      .then(() => this.#deliver(frame))
      .catch((error: unknown) => this.#options.log.warn("a frame could not be delivered", { type: frame.type, error }))
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  async #deliver(frame: AgentFrame): Promise<void> {
    if (this.#over) return;
    const { hubUrl, identity } = this.#options;
    const body = { session_epoch: this.#welcome.session_epoch, frames: [frame] };
    const ask = { method: "POST" as const, path: `${this.#base}/frames`, body };
    this.#take((await askHub(hubUrl, identity.tls, ask, Frames)).frames);
  }

  #take(frames: readonly unknown[]): void {
    const understood = frames.map(frameOf);
    if (understood.includes(null)) this.#options.log.warn("a frame of the hub was not understood and is ignored");
    for (const frame of understood.filter((one): one is HubFrame => one !== null)) this.#options.take(frame);
  }
}
