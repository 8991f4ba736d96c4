import type { NodeId } from "../../shared/ids.ts";
import type { HubFrame } from "../../shared/protocol/frames.ts";
import type { CloseReason } from "../../shared/protocol/version.ts";

/** How frames reach the agent: a WebSocket, or a queue that a long poll empties. */
export interface Channel {
  send(frame: HubFrame): void;
  close(reason: CloseReason): void;
  /** Ends the channel without a close message, because the other side is gone. */
  drop(): void;
}

/** One connected agent. Small on purpose: a hub holds thousands. */
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
  /** Milliseconds of `performance.now()`. */
  heardAt: number;
  /** Whether the agent's journal has settled its earlier deliveries. A task that is offered before that would look like a lost one. */
  settled: boolean;
  /** How many statements about the hub's keys this agent was sent. */
  trustTold: number;
  /** True if an earlier boot id came back after another one: the first frame then proves that a second host is alive. */
  bootReturned: boolean;
}

/** Allowance beyond two times to live: a long poll may be silent for this long while it waits. */
const SILENCE_MS = 45_000;

/** The sessions of this hub: one for each node, the newest. */
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

  /** If two sessions of a node open at once, the one with the higher epoch stays, whichever is added first. */
  add(session: Session): void {
    this.supersede(session.nodeId, session.epoch);
    if (this.#byNode.has(session.nodeId)) session.channel.close("superseded");
    else this.#byNode.set(session.nodeId, session);
  }

  /** Ends the node's session here when its epoch is below `epoch`: a newer one exists, on this hub or another. */
  supersede(nodeId: NodeId, epoch: number): void {
    const old = this.#byNode.get(nodeId);
    if (old === undefined || old.epoch >= epoch) return;
    this.#byNode.delete(nodeId);
    old.channel.close("superseded");
  }

  /** False if the session had been superseded before. */
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

  /** Drops connections that TCP considers open but that have been silent for too long, e.g. after a power cut. */
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
