import type { AgentFrame, HubFrame, Welcome } from "../shared/protocol/frames.ts";
import type { CloseReason } from "../shared/protocol/version.ts";

export interface Channel {
  readonly kind: "websocket" | "long_poll";
  readonly welcome: Welcome;
  send(frame: AgentFrame): void;
  /** Resolves when the channel to the hub has ended, with the reason of its end. */
  readonly ended: Promise<ChannelEnd>;
  /** After a close for the reason `renewed`, the agent at once opens a new channel with its new certificate. */
  close(why: "stopped" | "renewed"): void;
}

export interface ChannelEnd {
  /**
   * The reason `retry_socket` ends a long poll so that the agent tries a WebSocket once more. After the end of a channel for the reason `renewed`,
   * the next channel uses the agent's new certificate.
   */
  readonly reason: CloseReason | "lost" | "stopped" | "retry_socket" | "renewed";
  readonly message: string;
}

export type TakeFrame = (frame: HubFrame) => void;

/** Thrown when the hub refuses the agent's identity, in which case the hub would refuse an immediate retry too. */
export class ChannelRefused extends Error {
  override readonly name = "ChannelRefused";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
