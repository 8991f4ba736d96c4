import type { Socket } from "node:net";
import { addressKey } from "./address-budgets.ts";
import { LIMITS } from "./budgets.ts";

export interface UnprovenLimits {
  readonly perAddress: number;
  readonly inAll: number;
}
const IN_FORCE: UnprovenLimits = { perAddress: LIMITS.unprovenPerAddress, inAll: LIMITS.unprovenInAll };

/**
 * Connections that have not proven to come from a host of this hub, e.g. an incomplete TLS handshake, or a connection without a request. If too many
 * connections have not proven to come from a host, the hub closes the oldest unproven connections. A client that holds many idle connections to the
 * hub loses its oldest connections, and cannot keep a host from connecting.
 */
export class UnprovenConnections {
  readonly #limits: UnprovenLimits;
  /** All unproven connections of the agent listener, in the order in which the connections opened. */
  readonly #all = new Map<string, { readonly address: string; readonly socket: Socket }>();
  readonly #byAddress = new Map<string, Set<string>>();

  constructor(limits: UnprovenLimits = IN_FORCE) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#all.size;
  }

  opened(socket: Socket): void {
    const peer = peerOf(socket);
    if (peer === null) return;
    const address = addressKey(socket.remoteAddress ?? "");
    const own = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, own.add(peer));
    this.#all.set(peer, { address, socket });
    socket.once("close", () => this.#forget(peer));
    if (own.size > this.#limits.perAddress) this.#cut(own.keys().next().value);
    if (this.#all.size > this.#limits.inAll) this.#cut(this.#all.keys().next().value);
  }

  /** Marks the connection as a connection of a host of this hub, so that the connection is no longer unproven. */
  proven(socket: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const peer = peerOf(socket);
    if (peer !== null) this.#forget(peer);
  }

  isProven(socket: Pick<Socket, "remoteAddress" | "remotePort">): boolean {
    const peer = peerOf(socket);
    return peer !== null && !this.#all.has(peer);
  }

  #cut(peer: string | undefined): void {
    const oldest = this.#all.get(peer ?? "");
    if (peer === undefined || oldest === undefined) return;
    this.#forget(peer);
    oldest.socket.destroy();
  }

  #forget(peer: string): void {
    const known = this.#all.get(peer);
    if (known === undefined) return;
    this.#all.delete(peer);
    const own = this.#byAddress.get(known.address);
    own?.delete(peer);
    if (own?.size === 0) this.#byAddress.delete(known.address);
  }
}

/**
 * The key of a connection: the client's address and port; null if the socket is closed. No two connections of a listener have the same client address
 * and client port. A TLS socket has the address and port of the TCP socket below it.
 */
const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string | null =>
  remoteAddress === undefined || remotePort === undefined ? null : `${remoteAddress} ${remotePort}`;
