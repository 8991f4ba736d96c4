import type { Socket } from "node:net";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { InTx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { writeNoise } from "../node/noise.ts";
import { AddressBudgets } from "./address-budgets.ts";
import type { AddressKind, NodeKind, Rate } from "./budgets.ts";
import { plainAddress } from "./connection-attempts.ts";
import { NodeBudgets, type NodeLimits } from "./node-budgets.ts";
import { UnprovenConnections, type UnprovenLimits } from "./unproven-connections.ts";

/** What no agent asks for: another node's place, or one that there is not. Of the other refusals of a host its own budgets say how many there may be. */
const NOT_OF_A_HOST: ReadonlySet<ApiError["code"]> = new Set(["certificate_rejected", "not_found"]);

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

/** Whom a listener hears, and how much of each: the one place where budgets become answers. */
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

  /** A connection came, before TLS. */
  connected(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress);
    if (address !== null && this.#addresses.ask(address, "connection") > 0) socket.destroy();
    else this.unproven.opened(socket);
  }

  /**
   * What is answered to a request that is refused: the same, or that its address was refused too often. Only refusals count, so that who has a good
   * token or certificate is never in the way of a stranger behind the same address; what they cost is bounded by the connections, as this ends one.
   */
  refused(socket: Peer, error: ApiError): ApiError {
    const address = plainAddress(socket.remoteAddress);
    if (address === null || (this.unproven.isProven(socket) && !NOT_OF_A_HOST.has(error.code))) return error;
    const waitMs = this.#addresses.ask(address, "refusal");
    return waitMs === 0 ? error : tooMany(`Too many requests from ${address} were refused`, waitMs);
  }

  /** Throws where the address has asked too often for what needs neither a token nor a certificate. */
  opens(socket: Peer): void {
    const address = plainAddress(socket.remoteAddress);
    const waitMs = address === null ? 0 : this.#addresses.ask(address, "open");
    if (waitMs > 0) throw tooMany(`Too many requests came from ${address}`, waitMs);
  }

  /** Throws where the node's budget of these requests is used up. */
  asks(nodeId: NodeId, kind: NodeKind): void {
    const waitMs = this.nodes.ask(nodeId, kind);
    if (waitMs > 0) throw tooMany(`Node ${nodeId} asked too often (${kind})`, waitMs);
  }

  /** Throws where the node has sent more bytes than it may by requests. */
  sends(nodeId: NodeId, bytes: number): void {
    const waitMs = this.nodes.charge(nodeId, "bytes", bytes);
    if (waitMs > 0) throw tooMany(`Node ${nodeId} sent too much`, waitMs);
  }

  /** Writes down which nodes are noisy, and which are no more. */
  async tellNoise({ inTx }: { readonly inTx: InTx }, log: Log): Promise<void> {
    const changes = this.nodes.sweep();
    for (const [at, change] of changes.entries()) {
      try {
        await inTx((tx) => writeNoise(tx, change));
      } catch (error) {
        this.nodes.retell(changes.slice(at));
        throw error;
      }
      log.warn(change.noisy ? "noisy agent" : "agent noisy no more", { node_id: change.nodeId, kind: change.kind });
    }
  }

  sweepAddresses(): void {
    this.#addresses.sweep();
  }
}

function tooMany(what: string, waitMs: number): ApiError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return new ApiError("rate_limited", `${what}. Ask again in ${retryAfterSeconds} s.`, { retryAfterSeconds });
}
