import type { NodeId } from "../../shared/ids.ts";
import type { HubFrame } from "../../shared/protocol/frames.ts";
import type { CloseReason } from "../../shared/protocol/version.ts";

/** The channel by which the hub's frames reach an agent: a WebSocket, or a queue that a long poll empties. */
export interface Channel {
  send(frame: HubFrame): void;
  close(reason: CloseReason): void;
  /** Ends the channel to an agent without a close message, because the agent is gone. */
  drop(): void;
}

/** The hub's session with one connected agent. The session object is small, because a hub holds thousands of sessions. */
export interface Session {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly epoch: number;
  readonly serial: string;
  readonly bootId: string;
  readonly address: string | null;
  readonly channel: Channel;
  heartbeatTtlMs: number;
  /** The time when the hub last heard from the agent, in milliseconds of `performance.now()`. */
  heardAt: number;
  /**
   * True after the hub has compared the agent's journal of received tasks with the deliveries of former sessions. If the hub offered a task before it
   * has compared the agent's journal, the comparison would treat the delivery of this task as lost.
   */
  settled: boolean;
  /** The number of statements about the hub's keys that the hub has sent to the session's agent. */
  trustTold: number;
  /**
   * True if the agent's boot id differs from the boot id of the node's previous session, but equals the boot id of an earlier session. If an earlier
   * boot id returns and the session's agent then sends a frame, the hub knows that two hosts use the node's identity.
   */
  bootReturned: boolean;
}

/**
 * The hub drops a session after a silence of twice the agent's heartbeat interval plus `SILENCE_MS`. An agent with a long poll may be silent for
 * `SILENCE_MS` while its long-poll request waits.
 */
const SILENCE_MS = 45_000;

/** The agents' sessions with this hub: for each node only the newest session. */
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

  /** If two sessions of a node open at once, the session with the higher epoch stays, in whatever order the caller adds the two sessions. */
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

  /** Removes a session; false if a newer session of the node has already replaced it. */
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

  /** Drops agents' connections that were silent for too long although TCP considers them open, e.g. after a host's power cut. */
  dropSilent(now: number): Session[] {
    const silent = this.all().filter((session) => now - session.heardAt > 2 * session.heartbeatTtlMs + SILENCE_MS);
    for (const session of silent) session.channel.drop();
    return silent;
  }

  /**
   * Notes the time at which the hub heard from the agent. The hub writes the contact times of all sessions to the database once a second, in one
   * statement.
   */
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
