import { and, eq, sql } from "drizzle-orm";
import type { NodeId } from "../../../shared/ids.ts";
import { type AgentSession, agentSessions, type Node, nodes } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

/** NOTIFY channel; payload `<node id> <epoch>`: sessions of lower epochs are over, on whichever hub they are. */
export const SESSION_CHANNEL = "muster_sessions";

export type NewSession = Pick<
  AgentSession,
  | "nodeId"
  | "hubId"
  | "channel"
  | "bootId"
  | "agentVersion"
  | "protocolVersion"
  | "generation"
  | "heartbeatTtlMs"
  | "remoteAddress"
>;

/** Opens a session one epoch above the last; the row that was there is returned too, for the alarm on a doubled identity. */
export async function openSession(
  tx: Tx,
  session: NewSession,
): Promise<{ epoch: number; previous: AgentSession | null }> {
  const [previous] = await tx
    .select()
    .from(agentSessions)
    .where(eq(agentSessions.nodeId, session.nodeId))
    .for("update");
  const opened = { ...session, state: "open" as const, closeReason: null, closedAt: null };
  const [row] = await tx
    .insert(agentSessions)
    .values({ ...opened, sessionEpoch: 1 })
    .onConflictDoUpdate({
      target: agentSessions.nodeId,
      set: {
        ...opened,
        sessionEpoch: sql`${agentSessions.sessionEpoch} + 1`,
        connectedAt: sql`now()`,
        lastSeenAt: sql`now()`,
      },
    })
    .returning({ epoch: agentSessions.sessionEpoch });
  if (row === undefined) throw new Error(`no session was opened for node ${session.nodeId}`);
  await tx.execute(sql`select pg_notify(${SESSION_CHANNEL}, ${`${session.nodeId} ${row.epoch}`})`);
  return { epoch: row.epoch, previous: previous ?? null };
}

/** True when the session was still the newest one. */
export async function closeSession(tx: Tx, nodeId: NodeId, epoch: number, reason: string): Promise<boolean> {
  const rows = await tx
    .update(agentSessions)
    .set({ state: "closed", closeReason: reason, closedAt: sql`now()` })
    .where(and(eq(agentSessions.nodeId, nodeId), eq(agentSessions.sessionEpoch, epoch)))
    .returning({ nodeId: agentSessions.nodeId });
  return rows.length > 0;
}

/** One statement for all contacts of the last second; a session that was superseded meanwhile is not touched. */
export async function recordContacts(db: Db, contacts: readonly { nodeId: NodeId; epoch: number }[]): Promise<void> {
  if (contacts.length === 0) return;
  const ids = sql.param(contacts.map((contact) => contact.nodeId));
  const epochs = sql.param(contacts.map((contact) => contact.epoch));
  await db.execute(sql`
    with seen as (select * from unnest(${ids}::uuid[], ${epochs}::bigint[]) as s(node_id, epoch)),
    live as (
      update ${agentSessions} a set last_seen_at = now() from seen
      where a.node_id = seen.node_id and a.session_epoch = seen.epoch returning a.node_id)
    update ${nodes} n set last_agent_contact_at = now() from live where n.id = live.node_id`);
}

export interface SilentNode extends Pick<Node, "id" | "generation"> {
  readonly lastSeenAt: Date;
}

/** Active nodes whose newest session has been silent for longer than its time to live and the grace. */
export async function findSilentNodes(tx: Tx, graceMs: number): Promise<SilentNode[]> {
  return tx
    .select({
      id: nodes.id,
      generation: nodes.generation,
      lastSeenAt: sql<Date>`${agentSessions.lastSeenAt}`.mapWith(toDate),
    })
    .from(nodes)
    .innerJoin(agentSessions, eq(agentSessions.nodeId, nodes.id))
    .where(
      and(
        eq(nodes.status, "active"),
        sql`${agentSessions.lastSeenAt} < now() - make_interval(secs => (${agentSessions.heartbeatTtlMs} + ${graceMs}) / 1000.0)`,
      ),
    )
    .for("update", { of: nodes, skipLocked: true });
}
