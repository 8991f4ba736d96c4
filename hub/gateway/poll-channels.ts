import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { AgentFrame, Hello, HubFrame, Welcome } from "../../shared/protocol/frames.ts";
import { CLOSE_CODES, type CloseReason } from "../../shared/protocol/version.ts";
import { pause } from "../timing/pause.ts";
import type { AuthenticatedNode } from "./authenticate.ts";
import { refuseOldProtocol } from "./enroll.ts";
import { kindOf } from "./frame-kind.ts";
import type { Gateway } from "./gateway.ts";
import type { Guard } from "./guard.ts";
import type { Channel, Session } from "./session.ts";

const MAX_WAIT_MS = 30_000;

type Caller = Pick<AuthenticatedNode, "nodeId" | "serial">;

/**
 * Agents use the long poll on hosts that cannot open a WebSocket, for example behind a proxy. The answers to long-poll requests contain the same
 * frames that a WebSocket would carry.
 */
export class PollChannels {
  readonly #gateway: Gateway;
  readonly #open = new Map<NodeId, { session: Session; channel: PollChannel }>();
  readonly #guard: Guard;
  constructor(gateway: Gateway, guard: Guard) {
    this.#gateway = gateway;
    this.#guard = guard;
  }

  async open(hello: Hello, identity: AuthenticatedNode): Promise<Welcome> {
    refuseOldProtocol(hello.protocol_version);
    const channel = new PollChannel();
    const { session, welcome } = await this.#gateway.open(hello, identity, channel, "long_poll");
    this.#open.set(hello.node_id, { session, channel });
    await this.#gateway.welcomed(session, hello);
    return welcome;
  }

  /** Answers a long poll as soon as there is a frame for the agent, or without a frame after `waitMs`. */
  async wait(caller: Caller, epoch: number, waitMs: number, signal: AbortSignal): Promise<HubFrame[]> {
    const { session, channel } = this.#live(caller, epoch);
    await this.#gateway.take(session, { type: "heartbeat", seq: 0 });
    return channel.take(Math.min(waitMs, MAX_WAIT_MS), signal);
  }

  /** Processes the frames in an agent's long-poll request in their order, and returns the hub's frames for the agent. */
  async deliver(caller: Caller, epoch: number, frames: readonly AgentFrame[]): Promise<HubFrame[]> {
    const { nodeId } = caller;
    const { session, channel } = this.#live(caller, epoch);
    for (const frame of frames) {
      const kind = kindOf(frame);
      if (kind !== null) this.#guard.asks(nodeId, kind);
      await this.#gateway.take(session, frame);
      // After a long-poll channel has ended, the hub drops the remaining frames of the request, because the agent repeats these frames on its next
      // session.
      if (channel.closed !== null) break;
    }
    return channel.take(0);
  }

  /**
   * Only a client with the certificate that opened a session may use the session. A certificate that the hub issued between a backup and its restore
   * counts only after a hello (decision I10). A client with such a certificate must not get in by naming the number of another certificate's session,
   * because that number is easy to guess.
   */
  #live({ nodeId, serial }: Caller, epoch: number): { session: Session; channel: PollChannel } {
    const open = this.#open.get(nodeId);
    const session = open?.session;
    if (open === undefined || session?.epoch !== epoch || session.serial !== serial || open.channel.closed !== null) {
      throw new ApiError(
        "session_stale",
        `Session ${epoch} of node ${nodeId} is not open on this hub. Open a new one.`,
      );
    }
    return open;
  }

  /**
   * Reports each long-poll channel that has ended to the gateway. The hub calls `sweep` of the long-poll channels every second, and once when the hub
   * stops.
   */
  async sweep(): Promise<void> {
    for (const [nodeId, { session, channel }] of this.#open) {
      if (channel.closed === null) continue;
      this.#open.delete(nodeId);
      await this.#gateway.closed(session, channel.closed, false);
    }
  }
}

class PollChannel implements Channel {
  #frames: HubFrame[] = [];
  /** Ends the wait of the long-poll request that is under way; null when no request waits. */
  #endWait: (() => void) | null = null;
  #closed: string | null = null;

  get closed(): string | null {
    return this.#closed;
  }

  send(frame: HubFrame): void {
    this.#frames.push(frame);
    // A heartbeat acknowledgement alone does not end the wait of a long poll.
    if (frame.type !== "heartbeat.ack") this.#endWait?.();
  }

  close(reason: CloseReason): void {
    this.#closed = `${CLOSE_CODES[reason].code} ${reason}`;
    this.#endWait?.();
  }

  drop(): void {
    this.#closed = "the agent stopped asking";
    this.#endWait?.();
  }

  async take(waitMs: number, signal?: AbortSignal): Promise<HubFrame[]> {
    if (waitMs > 0 && this.#closed === null && this.#frames.every((frame) => frame.type === "heartbeat.ack")) {
      const ended = new AbortController();
      this.#endWait = () => ended.abort();
      await pause(waitMs, signal === undefined ? ended.signal : AbortSignal.any([ended.signal, signal]));
      this.#endWait = null;
    }
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }
}
