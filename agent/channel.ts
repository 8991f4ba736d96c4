import type { AgentFrame, HubFrame, Welcome } from "../shared/protocol/frames.ts";
import type { CloseReason } from "../shared/protocol/version.ts";

/** An open channel to the hub, after the hub's welcome frame. */
export interface Channel {
  readonly kind: "websocket" | "long_poll";
  readonly welcome: Welcome;
  send(frame: AgentFrame): void;
  /** The promise `ended` resolves with the reason when the channel has ended. */
  readonly ended: Promise<ChannelEnd>;
  /** If a channel is closed as `renewed`, the agent at once opens another one with the new certificate. */
  close(why: "stopped" | "renewed"): void;
}

export interface ChannelEnd {
  /**
   * The reason `retry_socket` means that a long poll ended so that the agent tries the WebSocket again. The reason `renewed` means that the next
   * channel uses the agent's new certificate.
   */
  readonly reason: CloseReason | "lost" | "stopped" | "retry_socket" | "renewed";
  readonly message: string;
}

export type TakeFrame = (frame: HubFrame) => void;

/** Thrown when the hub refused the agent's identity. After the hub refused an identity, an immediate retry would be refused too. */
export class ChannelRefused extends Error {
  override readonly name = "ChannelRefused";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
