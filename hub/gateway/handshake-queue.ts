import type { Socket } from "node:net";
import { addressKey } from "./address-budgets.ts";
import { LIMITS } from "./budgets.ts";

export interface HandshakeLimits {
  readonly everyMs: number;
  readonly perAddress: number;
  readonly inAll: number;
}
const IN_FORCE: HandshakeLimits = {
  everyMs: LIMITS.handshakeTurnMs,
  perAddress: LIMITS.handshakesPerAddress,
  inAll: LIMITS.handshakesInAll,
};

/** The length of a TLS record's header: one byte of kind, two bytes of version, two bytes of length. */
const HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
/**
 * The largest length of a TLS record in bytes (RFC 8446, 5.1). Node's TLS code itself refuses a TLS record whose header names a length over 16,384
 * bytes.
 */
const MOST_RECORD_BYTES = 16_384;

/** True if TLS can start, because the client's first TLS record is complete, or because the client's data is not a TLS record. */
export function isWhole(first: Buffer): boolean {
  if (first.length > 0 && first[0] !== HANDSHAKE_RECORD) return true;
  if (first.length < HEADER_BYTES) return false;
  const follow = first.readUInt16BE(HEADER_BYTES - 2);
  return follow > MOST_RECORD_BYTES || first.length >= HEADER_BYTES + follow;
}

interface Turn {
  readonly socket: Socket;
  readonly begin: () => void;
}

/**
 * Starts TLS for a few connections at a time. A TLS handshake costs half a millisecond of the event loop, more than any other work that an unknown
 * client can cause. Thousands of TLS handshakes at once would delay all other work of the hub. A connection whose first TLS record has arrived waits
 * only behind connections of its own address. A connection that has sent no TLS record is not in the handshake queue and delays no other connection.
 */
export class HandshakeQueue {
  readonly #begin: (socket: Socket) => void;
  readonly #cutShort: (remoteAddress: string | undefined) => void;
  readonly #withinMs: number;
  readonly #limits: HandshakeLimits;
  /** Connections that wait for their first TLS record, or for their turn to start TLS. */
  readonly #open = new Set<Socket>();
  /** For each address, the connections whose first TLS record has arrived, in the order of arrival. */
  readonly #waiting = new Map<string, Set<Turn>>();
  /** For each client address, the number of TLS handshakes that have started since the last tick of the queue's timer. */
  #begun = new Map<string, number>();
  #begunInAll = 0;
  #timer: NodeJS.Timeout | null = null;

  /**
   * `begin` is the connection listener of Node's TLS server; a call of `begin` starts the TLS handshake of a connection. The handshake queue calls
   * `cutShort` if the client ends the connection before its first TLS record has arrived.
   */
  constructor(
    deps: {
      readonly begin: (socket: Socket) => void;
      readonly cutShort: (remoteAddress: string | undefined) => void;
      readonly withinMs: number;
    },
    limits: HandshakeLimits = IN_FORCE,
  ) {
    this.#begin = deps.begin;
    this.#cutShort = deps.cutShort;
    this.#withinMs = deps.withinMs;
    this.#limits = limits;
  }

  get size(): number {
    return this.#open.size;
  }

  opened(socket: Socket): void {
    const { remoteAddress } = socket;
    const address = addressKey(remoteAddress ?? "");
    let first: Buffer = Buffer.alloc(0);
    const late = setTimeout(() => socket.destroy(), this.#withinMs);
    const leave = (): void => {
      clearTimeout(late);
      this.#open.delete(socket);
      socket.off("data", take).off("end", end).off("close", leave).off("error", broken);
    };
    const broken = (): void => this.#cutShort(remoteAddress);
    const end = (): void => {
      broken();
      socket.destroy();
    };
    const take = (part: Buffer): void => {
      first = first.length === 0 ? part : Buffer.concat([first, part]);
      if (!isWhole(first)) return;
      socket.off("data", take).pause();
      const begin = (): void => {
        leave();
        socket.unshift(first);
        this.#begin(socket);
      };
      this.#queue(address, { socket, begin });
    };
    this.#open.add(socket);
    socket.on("data", take).on("end", end).on("close", leave).on("error", broken);
  }

  #queue(address: string, turn: Turn): void {
    const own = this.#waiting.get(address) ?? new Set();
    this.#waiting.set(address, own.add(turn));
    this.#work();
  }

  /**
   * Starts the TLS handshakes of waiting connections, with one connection of each client address in turn. Between two ticks of the queue's timer,
   * `#work` starts at most `limits.perAddress` handshakes of one address and `limits.inAll` in all. Connections for which no handshake may start yet
   * wait for the next tick of the queue's timer.
   */
  #work(): void {
    for (let some = true; some && this.#begunInAll < this.#limits.inAll; ) {
      some = false;
      for (const [address, own] of this.#waiting) {
        const begun = this.#begun.get(address) ?? 0;
        if (begun >= this.#limits.perAddress || this.#begunInAll >= this.#limits.inAll) continue;
        const [next] = own;
        if (next === undefined) continue;
        own.delete(next);
        // After each handshake, the client's address moves to the end of the queue, so that no address is always first.
        this.#waiting.delete(address);
        if (own.size > 0) this.#waiting.set(address, own);
        some = true;
        if (next.socket.destroyed) continue;
        this.#begun.set(address, begun + 1);
        this.#begunInAll += 1;
        next.begin();
      }
    }
    if (this.#begunInAll > 0 || this.#waiting.size > 0)
      this.#timer ??= setTimeout(() => this.#nextTurn(), this.#limits.everyMs);
  }

  #nextTurn(): void {
    this.#timer = null;
    this.#begun = new Map();
    this.#begunInAll = 0;
    this.#work();
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting.clear();
  }
}
