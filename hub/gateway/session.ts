import type { NodeId } from "../../shared/ids.ts";
import type { HubFrame } from "../../shared/protocol/frames.ts";
import type { CloseReason } from "../../shared/protocol/version.ts";

/** How frames reach the agent: a WebSocket, or a queue that a long poll empties. */
export interface Channel {
  send(frame: HubFrame): void;
  close(reason: CloseReason): void;
  /** Ends it without a word: the other side is not there. */
  drop(): void;
}

/** One connected agent. Small on purpose: a hub holds thousands. */
export interface Session {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly epoch: number;
  /** Of the certificate that it was opened with. */
  readonly serial: string;
  readonly bootId: string;
  readonly address: string | null;
  readonly channel: Channel;
  heartbeatTtlMs: number;
  /** Milliseconds of `performance.now()`. */
  heardAt: number;
  /** Whether what the agent's journal says has settled its earlier deliveries: a task offered before that would be taken for one that it lost. */
  settled: boolean;
  /** How many statements about the hub's keys it was told. */
  trustTold: number;
  /** True for a boot that came back after another one: its first frame then shows that a second user lives. */
  bootReturned: boolean;
}

/** Beyond two times to live: a long poll may be silent for this long while it waits. */
const SILENCE_MS = 45_000;

/** The sessions of this hub: one a node, the newest. */
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

  /** Of two that open at once the one with the higher epoch stays, whichever is added first. */
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

  /** False when the session had been superseded before. */
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

  /** Connections that TCP believes in and that have been silent for too long, e.g. after a power cut, are dropped. */
  dropSilent(now: number): Session[] {
    const silent = this.all().filter((session) => now - session.heardAt > 2 * session.heartbeatTtlMs + SILENCE_MS);
    for (const session of silent) session.channel.drop();
    return silent;
  }

  /** Remembered until the next flush: contacts are written once a second, all in one statement. */
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
