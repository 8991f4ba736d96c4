import type { NodeId } from "../../../shared/ids.ts";
import { bigint, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/**
 * One row for each node describes the node's newest agent session. Each time an agent connects, `session_epoch` rises, and the hub refuses frames of
 * an older epoch (architecture 11).
 */
export const agentSessions = pgTable("agent_sessions", {
  nodeId: uuid("node_id").$type<NodeId>().primaryKey(),
  sessionEpoch: bigint("session_epoch", { mode: "number" }).notNull(),
  hubId: uuid("hub_id").notNull(),
  channel: text("channel", { enum: ["websocket", "long_poll"] }).notNull(),
  state: text("state", { enum: ["open", "closed"] }).notNull(),
  bootId: text("boot_id").notNull(),
  agentVersion: text("agent_version").notNull(),
  protocolVersion: integer("protocol_version").notNull(),
  generation: integer("generation").notNull(),
  /** A node counts as unreachable after its agent's heartbeat interval plus a grace period without contact. */
  heartbeatTtlMs: integer("heartbeat_ttl_ms").notNull(),
  remoteAddress: text("remote_address"),
  closeReason: text("close_reason"),
  connectedAt: at("connected_at").notNull().default(sql`now()`),
  lastSeenAt: at("last_seen_at").notNull().default(sql`now()`),
  closedAt: at("closed_at"),
  /** The number of the newest signed statement about the hub's keys that the agent has accepted and stored on disk. */
  trustSequence: integer("trust_sequence"),
  /** The time when an agent session of the node last sent a frame although a newer session had replaced that session. */
  displacedAt: at("displaced_at"),
});
export type AgentSession = typeof agentSessions.$inferSelect;
