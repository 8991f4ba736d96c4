import type { Socket } from "node:net";
import { addressKey } from "./address-budgets.ts";
import { LIMITS } from "./budgets.ts";

export interface UnprovenLimits {
  readonly perAddress: number;
  readonly inAll: number;
}
const IN_FORCE: UnprovenLimits = { perAddress: LIMITS.unprovenPerAddress, inAll: LIMITS.unprovenInAll };

/**
 * Connections of which nobody has shown yet that a host of this hub is at the other end: half of a TLS handshake, a request that does not come, a
 * stranger's. When there are too many the oldest goes: whoever holds many for nothing loses them, and a host that comes meanwhile gets through.
 */
export class UnprovenConnections {
  readonly #limits: UnprovenLimits;
  /** In the order in which they came. */
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

  /** What speaks over the connection is a host of this hub: it is not counted any more. */
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

/** Of one listener no two connections have the same; the TLS socket has that of the one below it. Null once it is closed. */
const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string | null =>
  remoteAddress === undefined || remotePort === undefined ? null : `${remoteAddress} ${remotePort}`;
