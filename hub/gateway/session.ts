import type { NodeId } from "../../shared/ids.ts";
import type { HubFrame } from "../../shared/protocol/frames.ts";
import type { CloseReason } from "../../shared/protocol/version.ts";

/** The way in which frames reach the agent: a WebSocket, or a queue that a long poll empties. */
export interface Channel {
  send(frame: HubFrame): void;
  close(reason: CloseReason): void;
  /** Ends the channel without a close message, because the other side is gone. */
  drop(): void;
}

/** One connected agent. The object is small, because a hub holds thousands of them. */
export interface Session {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly epoch: number;
  /** The serial of the certificate with which the session was opened. */
  readonly serial: string;
  readonly bootId: string;
  readonly address: string | null;
  readonly channel: Channel;
  heartbeatTtlMs: number;
  /** A time of `performance.now()`, in milliseconds. */
  heardAt: number;
  /** True if the agent's journal has settled its earlier deliveries. A task that is offered earlier would look like a lost delivery. */
  settled: boolean;
  /** The number of statements about the hub's keys that were sent to this agent. */
  trustTold: number;
  /** True if an earlier boot id came back after another one: the first frame then proves that a second host is alive. */
  bootReturned: boolean;
}

/** Added to twice the heartbeat interval. A long poll may be silent for this long while it waits. */
const SILENCE_MS = 45_000;

/** The sessions of this hub: for each node only the newest one. */
export class Sessions {
  readonly #byNode = new Map<NodeId, Session>();
  readonly #contacts = new Set<Session>();

  get size(): number {
    return this.#byNode.size;
  }
  get nodeIds(): NodeId[] {
    return [...this.#byNode.keys()];
  }
  get(nodeId: NodeId): Session | undefined {
    return this.#byNode.get(nodeId);
  }

  /** If two sessions of a node open at once, the one with the higher epoch stays, in whatever order they are added. */
  add(session: Session): void {
    this.supersede(session.nodeId, session.epoch);
    if (this.#byNode.has(session.nodeId)) session.channel.close("superseded");
    else this.#byNode.set(session.nodeId, session);
  }

  /** Ends the node's session on this hub if its epoch is below `epoch`, because a newer session exists on some hub. */
  supersede(nodeId: NodeId, epoch: number): void {
    const old = this.#byNode.get(nodeId);
    if (old === undefined || old.epoch >= epoch) return;
    this.#byNode.delete(nodeId);
    old.channel.close("superseded");
  }

  /** False if the session was already superseded. */
  remove(session: Session): boolean {
    if (this.#byNode.get(session.nodeId) !== session) return false;
    return this.#byNode.delete(session.nodeId);
  }

  isCurrent(session: Session): boolean {
    return this.#byNode.get(session.nodeId) === session;
  }

  all(): Session[] {
    return [...this.#byNode.values()];
  }

  closeAll(reason: CloseReason): void {
    for (const session of this.all()) session.channel.close(reason);
  }

  /** Drops connections that were silent for too long although TCP considers them open, e.g. after a power cut. */
  dropSilent(now: number): Session[] {
    const silent = this.all().filter((session) => now - session.heardAt > 2 * session.heartbeatTtlMs + SILENCE_MS);
    for (const session of silent) session.channel.drop();
    return silent;
  }

  /** Notes a contact until the next flush: all contacts are written once a second, in one statement. */
  contact(session: Session, now: number): void {
    session.heardAt = now;
    this.#contacts.add(session);
  }

  takeContacts(): Session[] {
    const contacts = [...this.#contacts].filter((session) => this.isCurrent(session));
    this.#contacts.clear();
    return contacts;
  }
}
