import type { Socket } from "node:net";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { InTx } from "../db/tx.ts";
import { writeNoise } from "../node/noise.ts";
import { plainAddress } from "../outbound/addresses.ts";
import { AddressBudgets } from "./address-budgets.ts";
import type { AddressKind, NodeKind, Rate } from "./budgets.ts";
import { NodeBudgets, type NodeLimits } from "./node-budgets.ts";
import { UnprovenConnections, type UnprovenLimits } from "./unproven-connections.ts";

/**
 * The error codes of refusals that no healthy agent causes: a request for another node, or for a node that does not exist. Refused requests of a host
 * with an error code that is not in `NOT_OF_A_HOST` count only against the host's own budgets.
 */
const NOT_OF_A_HOST: ReadonlySet<ApiError["code"]> = new Set(["certificate_rejected", "not_found"]);

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

/** Applies the budgets of a listener, and answers a request whose budget is used up with an error. */
export class Guard {
  readonly nodes: NodeBudgets;
  readonly unproven: UnprovenConnections;
  readonly #addresses: AddressBudgets;

  constructor(
    limits: {
      readonly nodes?: NodeLimits;
      readonly unproven?: UnprovenLimits;
      readonly addresses?: Readonly<Record<AddressKind, Rate>>;
    } = {},
  ) {
    this.#addresses = new AddressBudgets(limits.addresses);
    this.nodes = new NodeBudgets(limits.nodes);
    this.unproven = new UnprovenConnections(limits.unproven);
  }

  /** Counts a new connection to the agent listener, before TLS begins. */
  connected(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress);
    if (address !== null && this.#addresses.ask(address, "connection") > 0) socket.destroy();
    else this.unproven.opened(socket);
  }

  /**
   * The error for a refused request: the given error, or "too many requests" if the address was refused too often. The budget for refusals counts
   * only refused requests, so other clients at the same address do not affect a client with a valid token or certificate. When the hub refuses an
   * address, the hub also ends the connection, so the budget for new connections limits the cost of refusals.
   */
  refused(socket: Peer, error: ApiError): ApiError {
    const address = plainAddress(socket.remoteAddress);
    if (address === null || (this.unproven.isProven(socket) && !NOT_OF_A_HOST.has(error.code))) return error;
    const waitMs = this.#addresses.ask(address, "refusal");
    return waitMs === 0 ? error : tooMany(`Too many requests from ${address} were refused`, waitMs);
  }

  /** Throws if the client's address has sent too many requests that need neither a token nor a certificate. */
  opens(socket: Peer): void {
    const address = plainAddress(socket.remoteAddress);
    const waitMs = address === null ? 0 : this.#addresses.ask(address, "open");
    if (waitMs > 0) throw tooMany(`Too many requests came from ${address}`, waitMs);
  }

  /** Throws if the node's budget for requests of the given kind is used up. */
  asks(nodeId: NodeId, kind: NodeKind): void {
    const waitMs = this.nodes.ask(nodeId, kind);
    if (waitMs > 0) throw tooMany(`Node ${nodeId} sent too many requests (${kind})`, waitMs);
  }

  /** Throws if the node has sent more bytes in requests than its budget. */
  sends(nodeId: NodeId, bytes: number): void {
    const waitMs = this.nodes.charge(nodeId, "bytes", bytes);
    if (waitMs > 0) throw tooMany(`Node ${nodeId} sent too many bytes`, waitMs);
  }

  /** Stores which nodes have become noisy, which means over a budget for a long time, and which nodes are no longer noisy. */
  async tellNoise({ inTx }: { readonly inTx: InTx }, log: Log): Promise<void> {
    const changes = this.nodes.sweep();
    for (const [at, change] of changes.entries()) {
      try {
        await inTx((tx) => writeNoise(tx, change));
      } catch (error) {
        this.nodes.retell(changes.slice(at));
        throw error;
      }
      log.warn(change.noisy ? "noisy agent" : "agent no longer noisy", { node_id: change.nodeId, kind: change.kind });
    }
  }

  sweepAddresses(): void {
    this.#addresses.sweep();
  }
}

function tooMany(what: string, waitMs: number): ApiError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return new ApiError("rate_limited", `${what}. Try again in ${retryAfterSeconds} s.`, { retryAfterSeconds });
}
