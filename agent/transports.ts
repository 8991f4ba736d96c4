import type { Channel } from "./channel.ts";

const SOCKET_FAILURES_BEFORE_POLL = 3;

/**
 * Which way to the hub is tried next. The long poll is for hosts behind something that lets no WebSocket through: after a few failures the two are
 * tried in turn, and where the long poll works, one failed attempt at a WebSocket is enough to go back to it.
 */
export class Transports {
  #socketFailures = 0;
  #pollNext = false;

  next(): Channel["kind"] {
    return this.#pollNext ? "long_poll" : "websocket";
  }

  opened(kind: Channel["kind"]): void {
    if (kind === "websocket") this.#socketFailures = 0;
    // Whatever ends this channel, the WebSocket is the first to be tried after it.
    this.#pollNext = false;
  }

  failed(kind: Channel["kind"]): void {
    if (kind === "websocket") this.#socketFailures += 1;
    this.#pollNext = kind === "websocket" && this.#socketFailures >= SOCKET_FAILURES_BEFORE_POLL;
  }
}
