import type { NodeId } from "../../../shared/ids.ts";
import { bigint, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at } from "./columns.ts";

/** One row a node: its newest session. Each connect raises `session_epoch`; frames of an older epoch are refused (architecture 11). */
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
  /** What the hub told the agent; past this plus the grace without contact the node is unreachable. */
  heartbeatTtlMs: integer("heartbeat_ttl_ms").notNull(),
  remoteAddress: text("remote_address"),
  closeReason: text("close_reason"),
  connectedAt: at("connected_at").notNull().default(sql`now()`),
  lastSeenAt: at("last_seen_at").notNull().default(sql`now()`),
  closedAt: at("closed_at"),
  /** Up to which statement the agent says that it believes the chain of the hub's keys; null: it has said nothing. */
  trustSequence: integer("trust_sequence"),
  /** When a session that gave way last answered as a living host does, though the newer one came from the same boot and address. */
  displacedAt: at("displaced_at"),
});
export type AgentSession = typeof agentSessions.$inferSelect;
