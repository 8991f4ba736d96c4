import type { Channel } from "./channel.ts";

const SOCKET_FAILURES_BEFORE_POLL = 3;

/**
 * Chooses the transport, a WebSocket or a long poll, for the agent's next connection. The long poll is for hosts behind a proxy that lets no
 * WebSocket pass. After a few failed attempts with a WebSocket, the agent alternates between WebSocket and long poll. Where the long poll works, the
 * agent returns to it after one failed attempt with a WebSocket.
 */
export class Transports {
  #socketFailures = 0;
  #pollNext = false;

  next(): Channel["kind"] {
    return this.#pollNext ? "long_poll" : "websocket";
  }

  opened(kind: Channel["kind"]): void {
    if (kind === "websocket") this.#socketFailures = 0;
    // After the end of any open channel, the agent first tries a WebSocket.
    this.#pollNext = false;
  }

  failed(kind: Channel["kind"]): void {
    if (kind === "websocket") this.#socketFailures += 1;
    this.#pollNext = kind === "websocket" && this.#socketFailures >= SOCKET_FAILURES_BEFORE_POLL;
  }
}
