import type { AgentFrame, HubFrame, Welcome } from "../shared/protocol/frames.ts";
import type { CloseReason } from "../shared/protocol/version.ts";

/** An open channel to the hub, after its welcome. */
export interface Channel {
  readonly kind: "websocket" | "long_poll";
  readonly welcome: Welcome;
  send(frame: AgentFrame): void;
  /** Resolves with the reason when the channel has ended. */
  readonly ended: Promise<ChannelEnd>;
  /** `renewed`: the next channel is opened at once, with the new certificate. */
  close(why: "stopped" | "renewed"): void;
}

export interface ChannelEnd {
  /** `retry_socket`: a long poll ended so that the WebSocket is tried again. `renewed`: the next channel uses the new certificate. */
  readonly reason: CloseReason | "lost" | "stopped" | "retry_socket" | "renewed";
  readonly message: string;
}

export type TakeFrame = (frame: HubFrame) => void;

/** The hub refused this identity. An immediate retry would be refused too. */
export class ChannelRefused extends Error {
  override readonly name = "ChannelRefused";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
