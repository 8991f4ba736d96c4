import type { AgentFrame, HubFrame, Welcome } from "../shared/protocol/frames.ts";
import type { CloseReason } from "../shared/protocol/version.ts";

/** An open way to the hub, after its welcome. */
export interface Channel {
  readonly kind: "websocket" | "long_poll";
  readonly welcome: Welcome;
  send(frame: AgentFrame): void;
  /** Resolves when the channel has ended, with why. */
  readonly ended: Promise<ChannelEnd>;
  /** `renewed`: the next one is opened at once, with the new certificate. */
  close(why: "stopped" | "renewed"): void;
}

export interface ChannelEnd {
  /** `retry_socket`: a long poll that works has ended so that the WebSocket is tried again. `renewed`: the next certificate is to be used. */
  readonly reason: CloseReason | "lost" | "stopped" | "retry_socket" | "renewed";
  readonly message: string;
}

export type TakeFrame = (frame: HubFrame) => void;

/** The hub said no to this identity; trying again at once is of no use. */
export class ChannelRefused extends Error {
  override readonly name = "ChannelRefused";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
