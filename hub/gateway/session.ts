import type { NodeId } from "../../shared/ids.ts";
import type { HubFrame } from "../../shared/protocol/frames.ts";
import type { CloseReason } from "../../shared/protocol/version.ts";

/** How frames reach the agent: a WebSocket, or a queue that a long poll empties. */
export interface Channel {
  send(frame: HubFrame): void;
  close(reason: CloseReason): void;
}

/** One connected agent. Small on purpose: a hub holds thousands. */
export interface Session {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly epoch: number;
  readonly channel: Channel;
  heartbeatTtlMs: number;
}

/** The sessions of this hub: one a node, the newest. */
export class Sessions {
  readonly #byNode = new Map<NodeId, Session>();
  readonly #contacts = new Map<NodeId, number>();

  get size(): number {
    return this.#byNode.size;
  }
  get nodeIds(): NodeId[] {
    return [...this.#byNode.keys()];
  }
  get(nodeId: NodeId): Session | undefined {
    return this.#byNode.get(nodeId);
  }

  add(session: Session): void {
    this.supersede(session.nodeId, session.epoch);
    this.#byNode.set(session.nodeId, session);
  }

  /** Ends the node's session here when its epoch is below `epoch`: a newer one exists, on this hub or another. */
  supersede(nodeId: NodeId, epoch: number): void {
    const old = this.#byNode.get(nodeId);
    if (old === undefined || old.epoch >= epoch) return;
    this.#byNode.delete(nodeId);
    old.channel.close("superseded");
  }

  /** False when the session had been superseded before. */
  remove(session: Session): boolean {
    if (this.#byNode.get(session.nodeId) !== session) return false;
    return this.#byNode.delete(session.nodeId);
  }

  closeNode(nodeId: NodeId, reason: CloseReason): void {
    this.#byNode.get(nodeId)?.channel.close(reason);
  }

  closeAll(reason: CloseReason): void {
    for (const session of this.#byNode.values()) session.channel.close(reason);
  }

  /** Remembered until the next flush: contacts are written once a second, all in one statement. */
  contact(session: Session): void {
    this.#contacts.set(session.nodeId, session.epoch);
  }

  takeContacts(): { nodeId: NodeId; epoch: number }[] {
    const contacts = [...this.#contacts].map(([nodeId, epoch]) => ({ nodeId, epoch }));
    this.#contacts.clear();
    return contacts;
  }
}
