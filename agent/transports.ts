import type { Channel } from "./channel.ts";

const SOCKET_FAILURES_BEFORE_POLL = 3;

/**
 * Chooses the next transport. The long poll is for hosts behind a proxy without WebSockets. After a few failures the agent alternates
 * between both. Where the long poll works, one failed WebSocket attempt is enough to return to it.
 */
export class Transports {
  #socketFailures = 0;
  #pollNext = false;

  next(): Channel["kind"] {
    return this.#pollNext ? "long_poll" : "websocket";
  }

  opened(kind: Channel["kind"]): void {
    if (kind === "websocket") this.#socketFailures = 0;
    // After this channel the WebSocket is tried first, whatever ends the channel.
    this.#pollNext = false;
  }

  failed(kind: Channel["kind"]): void {
    if (kind === "websocket") this.#socketFailures += 1;
    this.#pollNext = kind === "websocket" && this.#socketFailures >= SOCKET_FAILURES_BEFORE_POLL;
  }
}
