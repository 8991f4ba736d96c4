import type { RawData, WebSocket } from "ws";
import type { Log } from "../../shared/log.ts";
import { AgentFrame, type HubFrame } from "../../shared/protocol/frames.ts";
import { CLOSE_CODES, type CloseReason, isSupportedProtocol } from "../../shared/protocol/version.ts";
import { pause } from "../timing/pause.ts";
import type { AuthenticatedNode } from "./authenticate.ts";
import { LIMITS } from "./budgets.ts";
import { kindOf } from "./frame-kind.ts";
import type { Gateway } from "./gateway.ts";
import type { Guard } from "./guard.ts";
import { parseJson } from "./json-text.ts";
import type { Channel, Session } from "./session.ts";

const HELLO_WITHIN_MS = 10_000;
const CLOSE_WITHIN_MS = 2_000;
/**
 * The number of unread bytes above which the hub closes the connection to a slow agent. After the close of its connection, the agent reconnects; the
 * agent's tasks wait in the database.
 */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

/** One agent's WebSocket, from the upgrade to the close. The hub processes the frames of one agent one after the other. */
export class SocketChannel implements Channel {
  readonly #socket: WebSocket;
  readonly #gateway: Gateway;
  readonly #identity: AuthenticatedNode;
  readonly #log: Log;
  #session: Session | null = null;
  #work: Promise<void> = Promise.resolve();
  readonly #guard: Guard;
  /**
   * The agent's frames that the hub has read and not processed yet. If an agent sends faster than the hub processes, the hub stops reading from the
   * agent's socket.
   */
  #waiting = { frames: 0, bytes: 0 };
  /**
   * True after the hub has closed the agent's session. The hub drops frames that arrive after it has closed the session, and the agent repeats these
   * frames on its next session.
   */
  #ended = false;
  readonly #gone = new AbortController();

  constructor(
    socket: WebSocket,
    identity: AuthenticatedNode,
    { gateway, guard, log }: { readonly gateway: Gateway; readonly guard: Guard; readonly log: Log },
  ) {
    this.#guard = guard;
    this.#socket = socket;
    this.#gateway = gateway;
    this.#identity = identity;
    this.#log = log;
    const helloTimer = setTimeout(() => this.#session === null && this.close("hello_timeout"), HELLO_WITHIN_MS);
    socket.on("message", (data) => {
      const bytes = sizeOf(data);
      this.#wait(1, bytes);
      this.#queue(() => this.#take(data, bytes).finally(() => this.#wait(-1, -bytes)));
    });
    // The ws library reports an oversized or malformed frame as an error event, and closes the socket with a code of its own (1009, 1002, 1007).
    socket.on("error", (error) => log.info("agent socket failed", { node_id: identity.nodeId, error: error.message }));
    socket.on("close", (code, reason) => {
      clearTimeout(helloTimer);
      this.#gone.abort();
      this.#queue(async () => {
        if (this.#session === null) return;
        // A running agent answers the hub's close message with the hub's own close code. A WebSocket connection that is dead or was already closed
        // ends with a close code that the hub did not send.
        const answered = this.#ended && code === CLOSE_CODES.superseded.code;
        await gateway.closed(this.#session, `${code} ${reason.toString()}`.trim(), answered);
      });
    });
  }

  send(frame: HubFrame): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > MAX_BUFFERED_BYTES) {
      this.#log.warn("slow reader dropped", {
        node_id: this.#identity.nodeId,
        buffered_bytes: this.#socket.bufferedAmount,
      });
      this.#socket.terminate();
      return;
    }
    this.#socket.send(JSON.stringify(frame));
  }

  close(reason: CloseReason): void {
    this.#ended = true;
    this.#socket.close(CLOSE_CODES[reason].code, reason);
    // The hub does not wait for an agent that does not answer the hub's close message.
    setTimeout(() => this.#socket.terminate(), CLOSE_WITHIN_MS).unref();
  }

  drop(): void {
    this.#socket.terminate();
  }

  #wait(frames: number, bytes: number): void {
    this.#waiting = { frames: this.#waiting.frames + frames, bytes: this.#waiting.bytes + bytes };
    const { waitingFrames, waitingBytes } = LIMITS;
    if (this.#waiting.frames >= waitingFrames || this.#waiting.bytes >= waitingBytes) this.#socket.pause();
    else if (
      this.#socket.isPaused &&
      this.#waiting.frames < waitingFrames / 2 &&
      this.#waiting.bytes < waitingBytes / 2
    )
      this.#socket.resume();
  }

  #queue(step: () => Promise<void>): void {
    this.#work = this.#work.then(step).catch((error: unknown) => {
      // The hub cannot process an agent's frame while, for example, the database is unreachable. After an error with an agent's frame, the hub closes
      // the connection. After the hub has closed the connection, the agent reconnects and repeats the frames that the hub has not acknowledged.
      this.#log.warn("an agent's frame could not be processed", { node_id: this.#identity.nodeId, error });
      this.#socket.close(1011, "try again");
    });
  }

  /**
   * Delays the frames of an agent that is over its budget, without a loss of frames. The hub closes the connection of an agent that stays over its
   * budget.
   */
  async #pause(waitMs: number): Promise<void> {
    if (waitMs === 0) return;
    if (this.#guard.nodes.isNoisy(this.#identity.nodeId)) return this.close("rate_limited");
    await pause(waitMs, this.#gone.signal);
  }

  async #take(data: RawData, bytes: number): Promise<void> {
    if (this.#ended) return;
    const { nodeId } = this.#identity;
    await this.#pause(this.#guard.nodes.charge(nodeId, "bytes", bytes));
    if (this.#ended) return;
    const frame = parseFrame(data);
    if (frame === null) {
      this.#log.warn("bad frame", { node_id: this.#identity.nodeId });
      this.close("bad_frame");
      return;
    }
    if (this.#session !== null) {
      await this.#gateway.take(this.#session, frame);
      const kind = kindOf(frame);
      if (kind !== null) await this.#pause(this.#guard.nodes.charge(nodeId, kind));
      return;
    }
    if (frame.type !== "hello" || !(await this.#gateway.fits(frame, this.#identity))) return this.close("bad_frame");
    if (!isSupportedProtocol(frame.protocol_version)) return this.close("protocol_unsupported");
    const { session, welcome } = await this.#gateway.open(frame, this.#identity, this, "websocket");
    this.#session = session;
    this.send(welcome);
    await this.#gateway.welcomed(session, frame);
  }
}

const sizeOf = (data: RawData): number =>
  Array.isArray(data) ? data.reduce((sum, part) => sum + part.length, 0) : data.byteLength;

/**
 * Parses an agent's frame; null for data that is not a frame of the protocol: invalid JSON, an unknown type, an unknown field, or an invalid value.
 */
function parseFrame(data: RawData): AgentFrame | null {
  try {
    const parsed = parseJson(AgentFrame, data.toString());
    return parsed.success ? parsed.data : null;
  } catch {
    // An agent's data that is not JSON is no frame.
    return null;
  }
}
