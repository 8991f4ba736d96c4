import type { NodeId } from "../../shared/ids.ts";
import type { AgentFrame, Hello, Welcome } from "../../shared/protocol/frames.ts";
import { CLOSE_CODES, PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import { closeSession, findVoidSessions, openSession, recordContacts } from "../db/queries/agent-sessions.ts";
import { hadRecently, knowsBoot, recordNodeEvent } from "../db/queries/node-events.ts";
import { keepInventory } from "../db/queries/node-inventories.ts";
import { readNode } from "../db/queries/nodes.ts";
import type { AgentSession, Node } from "../db/schema/index.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { applyReadinessSignal, writeConnected } from "../node/conditions.ts";
import { heartbeatTtlMs } from "../node/heartbeat.ts";
import { admitManualNode } from "../node/manual-mode.ts";
import { moveNode } from "../node/move-node.ts";
import type { AuthenticatedNode } from "./authenticate.ts";
import type { Dispatcher } from "./dispatch.ts";
import type { Channel, Session, Sessions } from "./session.ts";

/** An alarm on a doubled identity is not said again within this time: two clones may take turns every second. */
const ALARM_EVERY_MINUTES = 10;

export interface GatewayDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly hubId: string;
  readonly hubVersion: string;
  readonly heartbeatMinTtlMs: number;
  readonly sessions: Sessions;
  readonly dispatcher: Dispatcher;
  readonly log: Log;
}

/** What happens on an agent's channel, whichever it is: a WebSocket or the long-poll fallback. */
export class Gateway {
  readonly #deps: GatewayDependencies;
  #ending = 0;
  constructor(deps: GatewayDependencies) {
    this.#deps = deps;
  }

  /**
   * Opens the session that a hello asks for: one epoch above the last, the newest wins. A node that was offline is active again, as contact
   * is proof of life. Two hosts that take turns with one identity raise an alarm.
   */
  async open(
    hello: Hello,
    identity: AuthenticatedNode,
    channel: Channel,
    kind: AgentSession["channel"],
    remoteAddress: string | null,
  ): Promise<{ session: Session; welcome: Welcome }> {
    const { inTx, sessions, hubId, hubVersion, heartbeatMinTtlMs } = this.#deps;
    const ttl = heartbeatTtlMs(sessions.size + 1, heartbeatMinTtlMs, Math.random());
    const epoch = await inTx(async (tx) => {
      const opened = await openSession(tx, {
        nodeId: hello.node_id,
        hubId,
        channel: kind,
        bootId: hello.boot_id,
        agentVersion: hello.agent_version,
        protocolVersion: hello.protocol_version,
        generation: hello.generation,
        heartbeatTtlMs: ttl,
        remoteAddress,
      });
      const node = await requireNode(tx, hello.node_id);
      if (opened.previous?.bootId !== hello.boot_id) await this.#noticeBoot(tx, hello);
      if (node.status === "offline") {
        const move = { from: "offline", to: "active", owner: "heartbeat" } as const;
        await moveNode(tx, node.id, move, "The agent is in contact again");
      }
      const message = `Connected by ${kind === "websocket" ? "WebSocket" : "long poll"}`;
      await writeConnected(tx, node, "True", "Connected", message);
      return opened.epoch;
    });
    const session: Session = {
      nodeId: hello.node_id,
      generation: hello.generation,
      epoch,
      serial: identity.serial,
      channel,
      heartbeatTtlMs: ttl,
      heardAt: performance.now(),
      settled: false,
    };
    sessions.add(session);
    const welcome: Welcome = {
      type: "welcome",
      protocol_version: PROTOCOL_VERSION,
      session_epoch: epoch,
      heartbeat_ttl_ms: ttl,
      hub_version: hubVersion,
      hub_time: new Date().toISOString(),
    };
    return { session, welcome };
  }

  /**
   * A host never returns to a boot that another boot has followed. When the node's sessions do, two hosts run with one identity, e.g. a cloned
   * disk. A mere reboot is one change of boot and no alarm.
   */
  async #noticeBoot(tx: Tx, hello: Hello): Promise<void> {
    const { node_id: nodeId, generation, boot_id: bootId } = hello;
    if (!(await knowsBoot(tx, nodeId, generation, bootId))) {
      await recordNodeEvent(tx, {
        nodeId,
        type: "session_opened",
        owner: "gateway",
        message: `First contact of boot ${bootId}`,
        details: { boot_id: bootId, generation, agent_version: hello.agent_version },
      });
      return;
    }
    this.#deps.log.warn("duplicate identity", { node_id: nodeId, boot_id: bootId });
    if (await hadRecently(tx, nodeId, "duplicate_identity", ALARM_EVERY_MINUTES)) return;
    await recordNodeEvent(tx, {
      nodeId,
      type: "duplicate_identity",
      owner: "gateway",
      message:
        "Two hosts use this node's identity: sessions of two boots take turns. Find the copy and onboard it anew.",
      details: { boot_id: bootId, generation },
    });
  }

  /** After the welcome was sent: only now may tasks be offered. */
  async welcomed(session: Session, hello: Hello): Promise<void> {
    await this.#deps.dispatcher.welcomed(session, hello.journal);
  }

  /** Frames of a session that is over are dropped: what mattered in them is said again on the newest one, if that is the same host. */
  async take(session: Session, frame: AgentFrame): Promise<void> {
    const { sessions, inTx, db } = this.#deps;
    if (!sessions.isCurrent(session)) return;
    sessions.contact(session, performance.now());
    switch (frame.type) {
      case "hello":
        session.channel.close("bad_frame");
        return;
      case "heartbeat":
        session.heartbeatTtlMs = heartbeatTtlMs(sessions.size, this.#deps.heartbeatMinTtlMs, Math.random());
        session.channel.send({ type: "heartbeat.ack", seq: frame.seq, heartbeat_ttl_ms: session.heartbeatTtlMs });
        return;
      case "readiness":
        await inTx(async (tx) => {
          const node = await requireNode(tx, session.nodeId);
          await applyReadinessSignal(tx, node, "agent", frame.signal);
          await admitManualNode(tx, node, frame.signal);
        });
        session.channel.send({ type: "readiness.ack", signal_id: frame.signal.signal_id });
        return;
      case "inventory":
        await keepInventory(db, session.nodeId, frame.inventory);
        return;
      default:
        await this.#deps.dispatcher.take(session, frame);
    }
  }

  /** Only the newest session's end says that the agent is gone; that the hub itself stops says nothing of the agent. */
  async closed(session: Session, reason: string): Promise<void> {
    this.#ending += 1;
    this.#deps.sessions.remove(session);
    try {
      await this.#recordEnd(session, reason.slice(0, 200));
    } finally {
      this.#ending -= 1;
    }
  }

  /** Ends of sessions that are being written. */
  get ending(): number {
    return this.#ending;
  }

  async #recordEnd(session: Session, because: string): Promise<void> {
    await this.#deps.inTx(async (tx) => {
      if (!(await closeSession(tx, session.nodeId, session.epoch, because))) return;
      const node = await readNode(tx, session.nodeId);
      if (node === null || node.generation !== session.generation) return;
      if (because.startsWith(String(CLOSE_CODES.hub_stopping.code)))
        await writeConnected(tx, node, "Unknown", "HubStopping", "The hub that the agent was connected to stops");
      else await writeConnected(tx, node, "False", "Disconnected", `The connection ended: ${because}`);
    });
  }

  async flushContacts(): Promise<void> {
    await recordContacts(this.#deps.db, this.#deps.sessions.takeContacts());
  }

  /** Closes sessions of this hub that do not count any more: superseded elsewhere, revoked, or of a node provisioned anew. */
  async closeVoid(sessions: readonly Session[]): Promise<void> {
    for (const { nodeId, why } of await findVoidSessions(this.#deps.db, sessions)) {
      const session = this.#deps.sessions.get(nodeId);
      // Another session may have come meanwhile; it was checked when it was opened.
      if (session === undefined || !sessions.includes(session)) continue;
      this.#deps.log.info("agent session closed", { node_id: nodeId, reason: why });
      session.channel.close(why);
    }
  }
}

async function requireNode(tx: Tx, nodeId: NodeId): Promise<Node> {
  const node = await readNode(tx, nodeId);
  if (node === null) throw new Error(`node ${nodeId} has a session and no record`);
  return node;
}
