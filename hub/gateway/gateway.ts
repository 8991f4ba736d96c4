import { eq } from "drizzle-orm";
import type { NodeId } from "../../shared/ids.ts";
import type { AgentFrame, Hello, Welcome } from "../../shared/protocol/frames.ts";
import { PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import { closeSession, openSession, recordContacts } from "../db/queries/agent-sessions.ts";
import { type Node, nodeEvents, nodeInventories, nodes } from "../db/schema/index.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { applyReadinessSignal, writeConnected } from "../node/conditions.ts";
import { heartbeatTtlMs } from "../node/heartbeat.ts";
import { moveNode } from "../node/move-node.ts";
import type { Dispatcher } from "./dispatch.ts";
import type { Channel, Session, Sessions } from "./session.ts";

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
  constructor(deps: GatewayDependencies) {
    this.#deps = deps;
  }

  /**
   * Opens the session that a hello asks for: one epoch above the last, the newest wins. A node that was offline is active again, as contact
   * is proof of life. Two hosts that take turns with one identity raise an alarm.
   */
  async open(
    hello: Hello,
    channel: Channel,
    kind: "websocket" | "long_poll",
    remoteAddress: string | null,
  ): Promise<{ session: Session; welcome: Welcome }> {
    const { inTx, sessions, hubId, hubVersion, heartbeatMinTtlMs } = this.#deps;
    const ttl = heartbeatTtlMs(sessions.size + 1, heartbeatMinTtlMs, Math.random());
    const { epoch, now } = await inTx(async (tx) => {
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
      const node = await readNode(tx, hello.node_id);
      await this.#noticeDouble(tx, hello, opened.previous);
      if (node.status === "offline")
        await moveNode(
          tx,
          node.id,
          { from: "offline", to: "active", owner: "heartbeat" },
          "The agent is in contact again",
        );
      await writeConnected(
        tx,
        node,
        "True",
        "Connected",
        `Connected by ${kind === "websocket" ? "WebSocket" : "long poll"}`,
      );
      return { epoch: opened.epoch, now: new Date() };
    });
    const session: Session = {
      nodeId: hello.node_id,
      generation: hello.generation,
      epoch,
      channel,
      heartbeatTtlMs: ttl,
    };
    sessions.add(session);
    const welcome: Welcome = {
      type: "welcome",
      protocol_version: PROTOCOL_VERSION,
      session_epoch: epoch,
      heartbeat_ttl_ms: ttl,
      hub_version: hubVersion,
      hub_time: now.toISOString(),
    };
    return { session, welcome };
  }

  /** A live session of another boot that was seen a moment ago, and now this one: the same identity runs on two hosts, or flaps. */
  async #noticeDouble(
    tx: Tx,
    hello: Hello,
    previous: Awaited<ReturnType<typeof openSession>>["previous"],
  ): Promise<void> {
    if (
      previous === null ||
      previous.state !== "open" ||
      previous.bootId === hello.boot_id ||
      previous.generation !== hello.generation
    )
      return;
    if (Date.now() - previous.lastSeenAt.getTime() > previous.heartbeatTtlMs) return;
    const message = "Two hosts use this node's identity: a session of another boot was alive when this one opened";
    await tx.insert(nodeEvents).values({
      nodeId: hello.node_id,
      type: "duplicate_identity",
      owner: "gateway",
      message,
      details: { boot_ids: [previous.bootId, hello.boot_id] },
    });
    this.#deps.log.warn("duplicate identity", { node_id: hello.node_id, boot_ids: [previous.bootId, hello.boot_id] });
  }

  /** After the welcome was sent: only now may tasks be offered. */
  async welcomed(session: Session): Promise<void> {
    await this.#deps.dispatcher.offer([session.nodeId]);
  }

  async take(session: Session, frame: AgentFrame): Promise<void> {
    const { sessions, inTx, db } = this.#deps;
    sessions.contact(session);
    switch (frame.type) {
      case "hello":
        session.channel.close("bad_frame");
        return;
      case "heartbeat":
        session.heartbeatTtlMs = heartbeatTtlMs(sessions.size, this.#deps.heartbeatMinTtlMs, Math.random());
        session.channel.send({ type: "heartbeat.ack", seq: frame.seq, heartbeat_ttl_ms: session.heartbeatTtlMs });
        return;
      case "readiness": {
        await inTx(async (tx) => applyReadinessSignal(tx, await readNode(tx, session.nodeId), "agent", frame.signal));
        session.channel.send({ type: "readiness.ack", signal_id: frame.signal.signal_id });
        return;
      }
      case "inventory":
        await db
          .insert(nodeInventories)
          .values({ nodeId: session.nodeId, inventory: frame.inventory })
          .onConflictDoUpdate({
            target: nodeInventories.nodeId,
            set: { inventory: frame.inventory, reportedAt: new Date() },
          });
        return;
      default:
        await this.#deps.dispatcher.take(session, frame);
    }
  }

  /** Only the newest session's end says that the agent is gone. */
  async closed(session: Session, reason: string): Promise<void> {
    this.#deps.sessions.remove(session);
    await this.#deps.inTx(async (tx) => {
      if (!(await closeSession(tx, session.nodeId, session.epoch, reason.slice(0, 200)))) return;
      const node = await readNode(tx, session.nodeId);
      await writeConnected(tx, node, "False", "Disconnected", `The connection ended: ${reason.slice(0, 200)}`);
    });
  }

  async flushContacts(): Promise<void> {
    await recordContacts(this.#deps.db, this.#deps.sessions.takeContacts());
  }
}

async function readNode(tx: Tx, nodeId: NodeId): Promise<Node> {
  const [node] = await tx.select().from(nodes).where(eq(nodes.id, nodeId));
  if (node === undefined) throw new Error(`node ${nodeId} has a session and no record`);
  return node;
}
