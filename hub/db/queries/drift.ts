import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { and, eq, inArray, isNotNull, or, sql } from "../orm.ts";
import {
  type AgentSession,
  agentSessions,
  type MaasMachineRow,
  type MaasSite,
  maasMachines,
  maasSiteProfiles,
  maasSites,
  maasSiteWatches,
  type Node,
  type NodeMaasState,
  nodeMaasState,
  nodeOnboardings,
  nodes,
  workflowSubjects,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** A workflow may hold several subjects; this condition picks the subject of the node itself. */
const holdsTheNode = eq(workflowSubjects.subject, sql`'node:' || ${nodes.id}::text`);

/** All facts by which one node is judged. */
export interface DriftRow {
  readonly state: NodeMaasState;
  readonly node: Pick<Node, "id" | "hostname" | "status" | "host">;
  readonly machine: MaasMachineRow | null;
  readonly session: Pick<AgentSession, "lastSeenAt" | "state"> | null;
  readonly policy: { requireHwSync: boolean; hardwareSyncIntervalSeconds: number } | null;
  /** The hardware sync interval that the agent was last asked to set, and the interval that it reported as set. */
  readonly syncSeed: { readonly asked: number; readonly set: number | null } | null;
  readonly maasUrl: string;
  readonly siteStatus: MaasSite["status"];
  readonly hostInterface: string;
  /** When the last sweep that could read this machine began. Null if the last sweep could not parse the machine. */
  readonly lastSweepAt: Date | null;
  readonly heldBy: string | null;
}

/** Drift that a contact of the agent disproves. A contact marks no row as changed, so these few nodes are judged with every poll. */
const DISPROVED_BY_CONTACT = sql`${nodeMaasState.driftDetails} ->> 'rule' = 'powered_off'`;

/** The idempotency keys of all reseed tasks begin with `hw-sync-reseed/`, and a node's keys are indexed. */
const LAST_SEED = sql<DriftRow["syncSeed"]>`(
  select jsonb_build_object('asked', t.input -> 'interval_seconds', 'set', t.result -> 'interval_seconds')
  from tasks t where t.node_id = ${nodes.id} and t.idempotency_key like 'hw-sync-reseed/%' and t.state = 'succeeded'
  order by t.finished_at desc limit 1)`;

/** Nodes of a site that are bound to a machine: all of them, one of them, or those whose facts changed since they were judged. One statement. */
export async function readDriftRows(db: Db | Tx, siteId: SiteId, scope: "due" | "all" | NodeId): Promise<DriftRow[]> {
  const profiles = db
    .selectDistinctOn([nodeOnboardings.nodeId], {
      nodeId: nodeOnboardings.nodeId,
      requireHwSync: maasSiteProfiles.requireHwSync,
      hardwareSyncIntervalSeconds: maasSiteProfiles.hardwareSyncIntervalSeconds,
    })
    .from(nodeOnboardings)
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, nodeOnboardings.profileId))
    .where(eq(nodeOnboardings.siteId, siteId))
    .orderBy(nodeOnboardings.nodeId, sql`${nodeOnboardings.createdAt} desc`)
    .as("profiles");
  const due = or(isNotNull(nodeMaasState.reconcileDueAt), and(nodeMaasState.driftDetected, DISPROVED_BY_CONTACT));
  const which = scope === "all" ? undefined : scope === "due" ? due : eq(nodes.id, scope);
  return db
    .select({
      state: nodeMaasState,
      node: { id: nodes.id, hostname: nodes.hostname, status: nodes.status, host: nodes.host },
      machine: maasMachines,
      session: { lastSeenAt: agentSessions.lastSeenAt, state: agentSessions.state },
      policy: {
        requireHwSync: profiles.requireHwSync,
        hardwareSyncIntervalSeconds: profiles.hardwareSyncIntervalSeconds,
      },
      syncSeed: LAST_SEED,
      maasUrl: maasSites.apiBaseUrl,
      siteStatus: maasSites.status,
      hostInterface: maasSites.deploySshIface,
      lastSweepAt:
        sql<Date | null>`case when ${maasMachines.systemId} = any(${maasSiteWatches.unreadableSystemIds}) then null else ${maasSiteWatches.lastSweepAt} end`.mapWith(
          maasSiteWatches.lastSweepAt,
        ),
      heldBy: workflowSubjects.subject,
    })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .innerJoin(maasSites, eq(maasSites.id, nodeMaasState.siteId))
    .leftJoin(
      maasMachines,
      and(eq(maasMachines.siteId, nodeMaasState.siteId), eq(maasMachines.systemId, nodeMaasState.maasSystemId)),
    )
    .leftJoin(agentSessions, and(eq(agentSessions.nodeId, nodes.id), eq(agentSessions.generation, nodes.generation)))
    .leftJoin(maasSiteWatches, eq(maasSiteWatches.siteId, nodeMaasState.siteId))
    .leftJoin(profiles, eq(profiles.nodeId, nodes.id))
    .leftJoin(workflowSubjects, holdsTheNode)
    .where(and(eq(nodeMaasState.siteId, siteId), which));
}

/**
 * Stores the owner of each machine in MAAS whose node has come into service, and follows an owner who was renamed. A new owner's name counts as a
 * rename in two cases: it is the hub's own user, whose former names are known, or the node's agent was heard after the machine changed. One
 * statement.
 */
export async function rememberOwners(
  tx: Tx,
  siteId: SiteId,
  user: { readonly name: string; readonly formerNames: readonly string[] },
): Promise<void> {
  await tx.execute(sql`
    update node_maas_state s set maas_owner = m.owner
    from nodes n, maas_machines m
    where s.site_id = ${siteId} and s.maas_owner is distinct from m.owner and n.id = s.node_id and n.status in ('active', 'offline')
      and m.site_id = s.site_id and m.system_id = s.maas_system_id and m.status = ${MAAS_STATUS.deployed} and not m.absent and m.owner is not null
      and (s.maas_owner is null or (m.owner = ${user.name} and s.maas_owner = any(${sql.param([...user.formerNames])}::text[])) or exists (select from agent_sessions a
        where a.node_id = n.id and a.generation = n.generation and a.last_seen_at > m.observed_at))`);
}

/**
 * Forgets the owners of retired nodes whose machines are no longer deployed or are gone. Muster must not release a system that somebody deploys there
 * later. One statement.
 */
export async function forgetOwners(tx: Tx, siteId: SiteId): Promise<void> {
  await tx.execute(sql`
    update node_maas_state s set maas_owner = null
    from nodes n, maas_machines m
    where s.site_id = ${siteId} and s.maas_owner is not null and n.id = s.node_id and n.status = 'retired'
      and m.site_id = s.site_id and m.system_id = s.maas_system_id and (m.status <> ${MAAS_STATUS.deployed} or m.absent)`);
}

/** The hardware sync interval of the site's default profile. Null if the site is disabled or the profile does not require hardware sync. */
export async function siteSyncInterval(db: Db, siteId: SiteId): Promise<number | null> {
  const [row] = await db
    .select({ seconds: maasSiteProfiles.hardwareSyncIntervalSeconds })
    .from(maasSites)
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, maasSites.defaultProfileId))
    .where(and(eq(maasSites.id, siteId), eq(maasSites.status, "active"), eq(maasSiteProfiles.requireHwSync, true)));
  return row?.seconds ?? null;
}

/** How many of these machines, which MAAS no longer lists, belong to nodes in service. For them MAAS has not confirmed yet that they are gone. */
export async function countUnconfirmed(tx: Tx, siteId: SiteId, systemIds: readonly string[]): Promise<number> {
  if (systemIds.length === 0) return 0;
  const [row] = await tx
    .select({ count: sql<number>`count(*)::int` })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(
      and(
        eq(nodeMaasState.siteId, siteId),
        inArray(nodes.status, ["active", "offline"]),
        sql`${nodeMaasState.maasSystemId} = any(${sql.param([...systemIds])}::text[])`,
      ),
    );
  return row?.count ?? 0;
}

/** How many machines in MAAS belong to no node (lifecycle 6.4). */
export async function countUnmanaged(db: Db, siteId: SiteId): Promise<number> {
  const { rows } = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from maas_machines m
    where m.site_id = ${siteId}::uuid and not m.absent and not exists (
      select from node_maas_state s where s.site_id = m.site_id and s.maas_system_id = m.system_id)`);
  return rows[0]?.count ?? 0;
}

/** Marks these nodes as judged. A node whose facts changed after they were read stays due. At most two statements, for any number of nodes. */
export async function markReconciled(
  tx: Tx,
  siteId: SiteId,
  judged: readonly Pick<NodeMaasState, "nodeId" | "reconcileDueAt">[],
  scope: "due" | "all",
): Promise<void> {
  const due = judged.filter((one) => one.reconcileDueAt !== null);
  if (due.length > 0)
    await tx.execute(sql`
      update node_maas_state s set reconcile_due_at = null, last_reconciled_at = now()
      from unnest(${sql.param(due.map((one) => one.nodeId))}::uuid[], ${sql.param(due.map((one) => one.reconcileDueAt?.toISOString()))}::timestamptz[]) as read(node_id, due_at)
      where s.node_id = read.node_id and date_trunc('milliseconds', s.reconcile_due_at) = read.due_at`);
  if (scope === "all")
    await tx
      .update(nodeMaasState)
      .set({ lastReconciledAt: sql`now()` })
      .where(
        and(
          eq(nodeMaasState.siteId, siteId),
          sql`${nodeMaasState.nodeId} in (select m.node_id from node_maas_state m join maas_machines o on o.site_id = m.site_id and o.system_id = m.maas_system_id where m.site_id = ${siteId})`,
        ),
      );
}

export type DriftChange = Partial<
  Pick<NodeMaasState, "driftDetected" | "driftDetails" | "driftAcknowledged" | "maasOwner">
> & {
  readonly resolved?: boolean;
  /** True if a quarantine by the reconciler begins, false if it ends. */
  readonly quarantined?: boolean;
};

export async function writeDrift(
  tx: Tx,
  nodeId: NodeId,
  { resolved, quarantined, ...change }: DriftChange,
): Promise<void> {
  const nowIf = (yes: boolean) => (yes ? sql`now()` : null);
  await tx
    .update(nodeMaasState)
    .set({
      ...change,
      ...(resolved === undefined ? {} : { driftResolvedAt: nowIf(resolved) }),
      ...(quarantined === undefined ? {} : { quarantinedAt: nowIf(quarantined) }),
    })
    .where(eq(nodeMaasState.nodeId, nodeId));
}

/**
 * Locks the rows of nodes and then of their bindings until the transaction ends, and returns the current bindings. All code locks nodes before
 * bindings.
 */
export async function lockDriftStates(tx: Tx, nodeIds: readonly NodeId[]): Promise<Map<NodeId, NodeMaasState>> {
  if (nodeIds.length === 0) return new Map();
  await tx
    .select({ id: nodes.id })
    .from(nodes)
    .where(inArray(nodes.id, [...nodeIds]))
    .orderBy(nodes.id)
    .for("no key update");
  const rows = await tx
    .select()
    .from(nodeMaasState)
    .where(inArray(nodeMaasState.nodeId, [...nodeIds]))
    .orderBy(nodeMaasState.nodeId)
    .for("no key update");
  return new Map(rows.map((row) => [row.nodeId, row]));
}

/** The nodes among these that an operation holds now. No operation can begin while the transaction has their rows locked. */
export async function heldAmong(tx: Tx, nodeIds: readonly NodeId[]): Promise<Set<NodeId>> {
  const rows = await tx
    .select({ id: nodes.id })
    .from(nodes)
    .innerJoin(workflowSubjects, holdsTheNode)
    .where(inArray(nodes.id, [...nodeIds]));
  return new Set(rows.map((row) => row.id));
}
