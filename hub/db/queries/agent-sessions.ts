import type { NodeId } from "../../../shared/ids.ts";
import { and, eq, gt, inArray, type SQL, sql } from "../orm.ts";
import { type AgentSession, agentSessions, type Node, nodeCertificates, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * A notification `<node id> <epoch>` on PostgreSQL's channel `muster_sessions` ends the node's agent sessions of lower epochs on every hub. A
 * notification `<node id>` on PostgreSQL's channel `muster_sessions` asks each hub to check whether the node's agent session is still valid.
 */
export const SESSION_CHANNEL = "muster_sessions";

/** If a hub has closed an agent session because the agent was silent, the agent's next contact reopens the session. */
export const CLOSED_AS_SILENT = "silent";

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

/**
 * Opens a new agent session of a node, with an epoch one above the epoch of the node's last session. `openSession` also returns the row of the node's
 * previous session, for the check whether two hosts use one identity.
 */
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
        // A new agent session keeps `trustSequence` and `displacedAt` of the node's previous session if both sessions belong to one generation.
        trustSequence: sql`case when ${agentSessions.generation} = excluded.generation then ${agentSessions.trustSequence} end`,
        displacedAt: sql`case when ${agentSessions.generation} = excluded.generation then ${agentSessions.displacedAt} end`,
        connectedAt: sql`now()`,
        lastSeenAt: sql`now()`,
      },
    })
    .returning({ epoch: agentSessions.sessionEpoch });
  if (row === undefined) throw new Error(`no session was opened for node ${session.nodeId}`);
  await tx.execute(sql`select pg_notify(${SESSION_CHANNEL}, ${`${session.nodeId} ${row.epoch}`})`);
  return { epoch: row.epoch, previous: previous ?? null };
}

/** Closes an agent session, and returns true if the session was open and was the newest session of its node. */
export async function closeSession(tx: Tx, nodeId: NodeId, epoch: number, reason: string): Promise<boolean> {
  const rows = await tx
    .update(agentSessions)
    .set({ state: "closed", closeReason: reason, closedAt: sql`now()` })
    .where(
      and(eq(agentSessions.nodeId, nodeId), eq(agentSessions.sessionEpoch, epoch), eq(agentSessions.state, "open")),
    )
    .returning({ nodeId: agentSessions.nodeId });
  return rows.length > 0;
}

/** The fields of a node's agent session from which the query `findVoidSessions` decides whether the session is still valid. */
export interface HeldSession {
  readonly nodeId: NodeId;
  readonly epoch: number;
  readonly serial: string;
}
export interface Contact {
  readonly nodeId: NodeId;
  readonly epoch: number;
  readonly heartbeatTtlMs: number;
}

/** Records in one statement which agents made contact, each with the heartbeat interval that the hub last told the agent. */
export async function recordContacts(db: Db, contacts: readonly Contact[]): Promise<void> {
  if (contacts.length === 0) return;
  const ids = sql.param(contacts.map((contact) => contact.nodeId));
  const epochs = sql.param(contacts.map((contact) => contact.epoch));
  const ttls = sql.param(contacts.map((contact) => contact.heartbeatTtlMs));
  await db.execute(sql`
    with seen as (
      select * from unnest(${ids}::uuid[], ${epochs}::bigint[], ${ttls}::int[]) as s(node_id, epoch, ttl_ms)),
    live as (
      update ${agentSessions} a set last_seen_at = now(), heartbeat_ttl_ms = seen.ttl_ms,
        state = case when a.close_reason = ${CLOSED_AS_SILENT} then 'open' else a.state end,
        closed_at = case when a.close_reason = ${CLOSED_AS_SILENT} then null else a.closed_at end,
        close_reason = nullif(a.close_reason, ${CLOSED_AS_SILENT})
      from seen
      where a.node_id = seen.node_id and a.session_epoch = seen.epoch returning a.node_id)
    update ${nodes} n set last_agent_contact_at = now() from live where n.id = live.node_id`);
}

/** Returns the newer session that replaced the node's session of the given epoch, or null if no newer session exists. */
export async function readDisplacing(
  tx: Tx,
  nodeId: NodeId,
  epoch: number,
): Promise<(AgentSession & { readonly displacedBefore: boolean }) | null> {
  const [row] = await tx
    .select({
      session: agentSessions,
      displacedBefore: sql<boolean>`coalesce(${agentSessions.displacedAt} > now() - interval '1 hour', false)`,
    })
    .from(agentSessions)
    .where(and(eq(agentSessions.nodeId, nodeId), gt(agentSessions.sessionEpoch, epoch)))
    .for("update");
  return row === undefined ? null : { ...row.session, displacedBefore: row.displacedBefore };
}

export async function noteDisplaced(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.update(agentSessions).set({ displacedAt: sql`now()` }).where(eq(agentSessions.nodeId, nodeId));
}

type VoidBecause = "superseded" | "identity_revoked" | "certificate_replaced" | "certificate_expired";

/**
 * An agent session is void if the node has a newer session, or if the session's certificate is revoked, replaced, expired or of an earlier
 * generation. Each hub runs `findVoidSessions` regularly, so after a lost notification a void session lives only some seconds longer.
 */
export async function findVoidSessions(
  db: Db,
  held: readonly HeldSession[],
): Promise<{ nodeId: NodeId; why: VoidBecause }[]> {
  if (held.length === 0) return [];
  const { rows } = await db.execute<{ node_id: NodeId; why: VoidBecause }>(sql`
    with held as (
      select * from unnest(${sql.param(held.map((one) => one.nodeId))}::uuid[],
        ${sql.param(held.map((one) => one.epoch))}::bigint[],
        ${sql.param(held.map((one) => one.serial))}::text[]) as h(node_id, epoch, serial)),
    judged as (
      select held.node_id, case
        when n.id is null or n.status = 'deleted' or c.serial is null or c.revoked_at is not null
          or c.generation <> n.generation then 'identity_revoked'
        when a.session_epoch > held.epoch then 'superseded'
        when c.replaced_at is not null then 'certificate_replaced'
        when c.not_after <= now() then 'certificate_expired' end as why
      from held
        left join ${nodes} n on n.id = held.node_id
        left join ${nodeCertificates} c on c.serial = held.serial and c.node_id = held.node_id
        left join ${agentSessions} a on a.node_id = held.node_id)
    select node_id, why from judged where why is not null`);
  return rows.map((row) => ({ nodeId: row.node_id, why: row.why }));
}

export interface SilentNode extends Pick<Node, "id" | "hostname" | "siteId" | "generation" | "status"> {
  readonly lastSeenAt: Date;
  readonly epoch: number;
  readonly session: "open" | "closed";
}

/**
 * The field `silenceMs` says how long a node must have been silent beyond its agent's heartbeat interval. The field `upForMs` says how long this hub
 * has been running.
 */
export interface Silence {
  readonly silenceMs: number;
  readonly upForMs: number;
}

/**
 * Returns the silent nodes that are still `active` or whose session is still open, e.g. because the session's hub died. `findSilentNodes` leaves out
 * a node whose heartbeat interval exceeds half of `upForMs`, because the hub has not run long enough to judge the node (decision F2).
 */
export const findSilentNodes = (tx: Tx, silence: Silence): Promise<SilentNode[]> => silentNodes(tx, silence);

/**
 * Returns those of the nodes `nodeIds` whose agents are still silent, and locks the nodes' rows until the transaction ends. `lockSilentNodes` leaves
 * out a node that another transaction has locked.
 */
export const lockSilentNodes = (tx: Tx, nodeIds: readonly NodeId[], silence: Silence): Promise<SilentNode[]> =>
  silentNodes(tx, silence, inArray(nodes.id, [...nodeIds])).for("no key update", { skipLocked: true });

const silentNodes = (tx: Tx, { silenceMs, upForMs }: Silence, which?: SQL) =>
  tx
    .select({
      id: nodes.id,
      hostname: nodes.hostname,
      siteId: nodes.siteId,
      generation: nodes.generation,
      status: nodes.status,
      epoch: agentSessions.sessionEpoch,
      session: agentSessions.state,
      lastSeenAt: agentSessions.lastSeenAt,
    })
    .from(nodes)
    .innerJoin(agentSessions, eq(agentSessions.nodeId, nodes.id))
    .where(
      and(
        which,
        sql`(${nodes.status} = 'active' or ${agentSessions.state} = 'open')`,
        sql`${agentSessions.lastSeenAt} < now() - make_interval(secs => (${agentSessions.heartbeatTtlMs} + ${silenceMs}) / 1000.0)`,
        sql`2 * ${agentSessions.heartbeatTtlMs} <= ${Math.round(upForMs)}`,
      ),
    )
    .orderBy(nodes.id);

/** Finds offline nodes whose agent made contact in an open session, e.g. after a hub could not write to the database for a while. */
export async function lockReturnedNodes(tx: Tx, limit: number): Promise<Pick<Node, "id" | "generation">[]> {
  return tx
    .select({ id: nodes.id, generation: nodes.generation })
    .from(nodes)
    .innerJoin(agentSessions, eq(agentSessions.nodeId, nodes.id))
    .where(
      and(
        eq(nodes.status, "offline"),
        eq(agentSessions.state, "open"),
        eq(agentSessions.generation, nodes.generation),
        sql`${agentSessions.lastSeenAt} > now() - make_interval(secs => ${agentSessions.heartbeatTtlMs} / 1000.0)`,
      ),
    )
    .orderBy(nodes.id)
    .limit(limit)
    .for("no key update", { of: nodes, skipLocked: true });
}

export async function readOpenSession(db: Db | Tx, nodeId: NodeId, generation: number): Promise<AgentSession | null> {
  const [session] = await db
    .select()
    .from(agentSessions)
    .where(
      and(eq(agentSessions.nodeId, nodeId), eq(agentSessions.generation, generation), eq(agentSessions.state, "open")),
    );
  return session ?? null;
}

/**
 * True if the node's agent has no open session, and its last session closed before the given time or at least `graceSeconds` ago. An absence of the
 * agent below `graceSeconds` is a reconnect, for example after a restart of the hub.
 */
export async function isAgentGone(
  db: Db | Tx,
  node: Pick<Node, "id" | "generation">,
  { before, graceSeconds }: { readonly before: Date; readonly graceSeconds: number },
): Promise<boolean> {
  const [session] = await db
    .select({
      gone: sql<boolean>`${agentSessions.state} <> 'open' and (coalesce(${agentSessions.closedAt}, ${agentSessions.lastSeenAt}) <= ${before.toISOString()}::timestamptz
        or coalesce(${agentSessions.closedAt}, ${agentSessions.lastSeenAt}) <= now() - make_interval(secs => ${graceSeconds}))`,
    })
    .from(agentSessions)
    .where(and(eq(agentSessions.nodeId, node.id), eq(agentSessions.generation, node.generation)));
  return session?.gone ?? true;
}

/** Records that the agent has accepted and stored on disk the signed statements about the hub's keys up to the number `sequence`. */
export async function recordTrust(db: Db, nodeId: NodeId, epoch: number, sequence: number): Promise<void> {
  await db.execute(sql`
    update ${agentSessions} set trust_sequence = ${sequence} where node_id = ${nodeId} and session_epoch = ${epoch}`);
}
