import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { AgentFrame, Hello, Welcome } from "../../shared/protocol/frames.ts";
import { AGENT_COMES_BACK, CLOSE_CODES, PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import type { TrustChain } from "../../shared/trust.ts";
import {
  closeSession,
  findVoidSessions,
  noteDisplaced,
  openSession,
  readDisplacing,
  recordContacts,
  recordTrust,
} from "../db/queries/agent-sessions.ts";
import { knowsBoot, recordNodeEvent } from "../db/queries/node-events.ts";
import { keepInventory } from "../db/queries/node-inventories.ts";
import { readNode } from "../db/queries/nodes.ts";
import type { AgentSession, Node } from "../db/schema/index.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import { agentConnections, agentDisconnections } from "../metrics/counted/agents.ts";
import { admitAdoptedNode } from "../node/adopted-host.ts";
import { sessionVerdict } from "../node/clone-verdict.ts";
import { applyReadinessSignal, writeConnected } from "../node/conditions.ts";
import { admitExternalNode } from "../node/external/admit-node.ts";
import { judgeInventory } from "../node/hardware-check.ts";
import { heartbeatTtlMs } from "../node/heartbeat.ts";
import { blockIdentity, liftIdentityQuarantine } from "../node/identity-block.ts";
import { admitManualNode } from "../node/manual-mode.ts";
import { moveNode } from "../node/move-node.ts";
import type { AuthenticatedNode } from "./authenticate.ts";
import type { Dispatcher } from "./dispatch.ts";
import { fitsGeneration } from "./lost-certificate.ts";
import type { Channel, Session, Sessions } from "./session.ts";

/** The WebSocket close codes after which a healthy agent opens its next session at once. */
const COMES_BACK: ReadonlySet<number> = new Set([
  AGENT_COMES_BACK,
  CLOSE_CODES.certificate_expired.code,
  CLOSE_CODES.certificate_replaced.code,
]);

export interface GatewayDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly hubId: string;
  readonly hubVersion: string;
  readonly heartbeatMinTtlMs: number;
  readonly sessions: Sessions;
  readonly dispatcher: Dispatcher;
  readonly trustChain: () => TrustChain;
  readonly log: Log;
}

/** Processes the events of an agent's channel, which is a WebSocket or the long-poll fallback. */
export class Gateway {
  readonly #deps: GatewayDependencies;
  #ending = 0;
  constructor(deps: GatewayDependencies) {
    this.#deps = deps;
  }

  /** False if the hello is of another node or generation than the client certificate. */
  fits(hello: Hello, identity: AuthenticatedNode): Promise<boolean> {
    return fitsGeneration(this.#deps, hello, identity);
  }

  /**
   * Opens a session for an agent that has sent its hello message. The epoch of a session is one higher than the epoch of the node's last session.
   * Only the newest session of a node is valid. An offline node returns to `active`, because the hello message of its agent proves that the host is
   * alive.
   */
  async open(
    hello: Hello,
    identity: AuthenticatedNode,
    channel: Channel,
    kind: AgentSession["channel"],
  ): Promise<{ session: Session; welcome: Welcome }> {
    const { inTx, sessions, hubId, hubVersion, heartbeatMinTtlMs } = this.#deps;
    const ttl = heartbeatTtlMs(sessions.size + 1, heartbeatMinTtlMs, Math.random());
    const { epoch, bootReturned, after } = await inTx(async (tx) => {
      const opened = await openSession(tx, {
        nodeId: hello.node_id,
        hubId,
        channel: kind,
        bootId: hello.boot_id,
        agentVersion: hello.agent_version,
        protocolVersion: hello.protocol_version,
        generation: hello.generation,
        heartbeatTtlMs: ttl,
        remoteAddress: identity.address,
      });
      const node = await requireNode(tx, hello.node_id);
      const returned = opened.previous?.bootId !== hello.boot_id && (await this.#noticeBoot(tx, hello));
      if (node.status === "offline") {
        const move = { from: "offline", to: "active", owner: "heartbeat" } as const;
        await moveNode(tx, node.id, move, "The agent is in contact again");
      }
      await liftIdentityQuarantine(tx, node);
      const message = `Connected by ${kind === "websocket" ? "WebSocket" : "long poll"}`;
      await writeConnected(tx, node, "True", "Connected", message);
      return { epoch: opened.epoch, bootReturned: returned, after: afterOf(opened.previous, hello) };
    });
    agentConnections.add({ channel: kind, after });
    const session: Session = {
      nodeId: hello.node_id,
      generation: hello.generation,
      epoch,
      serial: identity.serial,
      bootId: hello.boot_id,
      address: identity.address,
      channel,
      heartbeatTtlMs: ttl,
      heardAt: performance.now(),
      settled: false,
      bootReturned,
      trustTold: 0,
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

  /** True if the node's present generation has reported the boot id of `hello` before, and a different boot id since then (decision I1). */
  async #noticeBoot(tx: Tx, hello: Hello): Promise<boolean> {
    const { node_id: nodeId, generation, boot_id: bootId } = hello;
    if (await knowsBoot(tx, nodeId, generation, bootId)) return true;
    await recordNodeEvent(tx, {
      nodeId,
      type: "session_opened",
      owner: "gateway",
      message: `First contact of boot ${bootId}`,
      details: { boot_id: bootId, generation, agent_version: hello.agent_version },
    });
    return false;
  }

  /**
   * The hub calls `welcomed` after it has sent the welcome message to an agent. The hub may offer tasks to an agent only after the welcome message.
   */
  async welcomed(session: Session, hello: Hello): Promise<void> {
    this.tellTrust([session]);
    await this.#deps.dispatcher.welcomed(session, hello.journal);
  }

  /** Sends the chain of signed statements about the hub's keys to agents: before any task that these keys sign, and after each new statement. */
  tellTrust(sessions: readonly Session[]): void {
    const chain = this.#deps.trustChain();
    for (const session of sessions) {
      if (chain.length <= session.trustTold) continue;
      session.trustTold = chain.length;
      session.channel.send({ type: "trust.update", statements: [...chain] });
    }
  }

  /** The hub drops frames of an ended session. On its newest session, the agent repeats the frames that the hub has not acknowledged. */
  async take(session: Session, frame: AgentFrame): Promise<void> {
    const { sessions, inTx, db } = this.#deps;
    if (!sessions.isCurrent(session)) return;
    sessions.contact(session, performance.now());
    if (session.bootReturned) await this.#judgeReturn(session);
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
          await admitAdoptedNode(tx, node);
          if (node.onboardingMode === "external") await admitExternalNode(tx, node.id);
        });
        session.channel.send({ type: "readiness.ack", signal_id: frame.signal.signal_id });
        return;
      case "trust.known":
        await recordTrust(db, session.nodeId, session.epoch, frame.sequence);
        return;
      case "inventory":
        await inTx(async (tx) => {
          await keepInventory(tx, session.nodeId, frame.inventory);
          const node = await requireNode(tx, session.nodeId);
          if (node.generation === session.generation) await judgeInventory(tx, node, frame.inventory);
          await admitAdoptedNode(tx, node);
          if (node.onboardingMode === "external") await admitExternalNode(tx, node.id);
        });
        return;
      default:
        await this.#deps.dispatcher.take(session, frame);
    }
  }

  /**
   * Only the end of a node's newest session means that the agent is gone; a stop of the hub itself says nothing about the agent. `answered` is true
   * if a newer session had replaced this session and the agent answered the hub's close message.
   */
  async closed(session: Session, reason: string, answered: boolean): Promise<void> {
    this.#ending += 1;
    this.#deps.sessions.remove(session);
    agentDisconnections.add({ because: endedBy(Number.parseInt(reason, 10)) });
    try {
      if (answered) await this.#judgeDisplaced(session);
      await this.#recordEnd(session, reason.slice(0, 200));
    } finally {
      this.#ending -= 1;
    }
  }

  get ending(): number {
    return this.#ending;
  }

  async #recordEnd(session: Session, because: string): Promise<void> {
    const code = Number.parseInt(because, 10);
    // After a WebSocket close code of the set COMES_BACK, the agent reconnects at once. The hub's periodic check for silent nodes
    // (`hub/node/offline-sweep.ts`) finds an agent that does not reconnect.
    if (COMES_BACK.has(code)) return;
    await this.#deps.inTx(async (tx) => {
      if (!(await closeSession(tx, session.nodeId, session.epoch, because))) return;
      const node = await readNode(tx, session.nodeId);
      if (node === null || node.generation !== session.generation) return;
      if (code === CLOSE_CODES.hub_stopping.code)
        await writeConnected(tx, node, "Unknown", "HubStopping", "The hub that the agent was connected to stops");
      else await writeConnected(tx, node, "False", "Disconnected", `The connection ended: ${because}`);
    });
  }

  /**
   * An agent may have sent its hello message before its host went down. A frame after the hub's welcome message proves that the host now runs with
   * the boot id of the hello message.
   */
  async #judgeReturn(session: Session): Promise<void> {
    session.bootReturned = false;
    const { bootId: boot_id, address, serial } = session;
    const found = { evidence: "boots_alternate", details: { boot_id, address, serial } } as const;
    await this.#deps.inTx((tx) => blockIdentity(tx, session.nodeId, session.generation, found));
  }

  /**
   * Decides whether two hosts use one node's identity, after an agent answered the close code `superseded`. An agent that answers the close code
   * `superseded` shows that its session and a newer session of the node existed at once.
   */
  async #judgeDisplaced(session: Session): Promise<void> {
    await this.#deps.inTx(async (tx) => {
      const newer = await readDisplacing(tx, session.nodeId, session.epoch);
      if (newer === null || newer.generation !== session.generation) return;
      const evidence = sessionVerdict({
        boot: newer.bootId === session.bootId ? "same" : "other",
        address: newer.remoteAddress === session.address ? "same" : "other",
        displacedBefore: newer.displacedBefore,
      });
      await noteDisplaced(tx, session.nodeId);
      const details = {
        boot_ids: [session.bootId, newer.bootId],
        addresses: [session.address, newer.remoteAddress],
        serial: session.serial,
      };
      if (evidence !== null) await blockIdentity(tx, session.nodeId, session.generation, { evidence, details });
    });
  }

  async flushContacts(): Promise<void> {
    await recordContacts(this.#deps.db, this.#deps.sessions.takeContacts());
  }

  /**
   * Closes sessions of this hub that are no longer valid: the node has a newer session or a newer generation, or the session's certificate is
   * invalid.
   */
  async closeVoid(sessions: readonly Session[]): Promise<void> {
    for (const { nodeId, why } of await findVoidSessions(this.#deps.db, sessions)) {
      const session = this.#deps.sessions.get(nodeId);
      // `closeVoid` skips sessions that were opened after its query for invalid sessions, because the hub checks each session when it opens the
      // session.
      if (session === undefined || !sessions.includes(session)) continue;
      this.#deps.log.info("agent session closed", { node_id: nodeId, reason: why });
      session.channel.close(why);
    }
  }
}

function afterOf(previous: AgentSession | null, hello: Hello): "first" | "reconnect" | "reboot" {
  if (previous === null) return "first";
  return previous.bootId === hello.boot_id ? "reconnect" : "reboot";
}

const HUB_CODES: ReadonlySet<number> = new Set(Object.values(CLOSE_CODES).map(({ code }) => code));
const WITHOUT_CLOSE_MESSAGE = 1006;

function endedBy(code: number): "hub" | "agent" | "network" {
  if (HUB_CODES.has(code)) return "hub";
  return Number.isNaN(code) || code === WITHOUT_CLOSE_MESSAGE ? "network" : "agent";
}

async function requireNode(tx: Tx, nodeId: NodeId): Promise<Node> {
  const node = await readNode(tx, nodeId);
  if (node === null) throw new Error(`node ${nodeId} has a session and no record`);
  return node;
}
