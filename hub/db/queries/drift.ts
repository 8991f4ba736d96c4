import type { NodeId, SiteId } from "../../../shared/ids.ts";
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
  nodeAdoptions,
  nodeMaasState,
  nodeOnboardings,
  nodes,
  type PowerAction,
  workflowSubjects,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { newestPowerActions } from "./power-actions.ts";

/**
 * A workflow may hold several subjects (objects that only this workflow may change), such as a node and a machine, and `holdsTheNode` selects the
 * subject `node:<id>`.
 */
const holdsTheNode = eq(workflowSubjects.subject, sql`'node:' || ${nodes.id}::text`);

export interface DriftRow {
  readonly state: NodeMaasState;
  readonly node: Pick<Node, "id" | "hostname" | "status" | "host" | "onboardingMode" | "generation">;
  readonly machine: MaasMachineRow | null;
  readonly session: Pick<AgentSession, "lastSeenAt" | "state"> | null;
  readonly policy: { requireHwSync: boolean; hardwareSyncIntervalSeconds: number } | null;
  /** The interval of hardware sync that the hub last ordered, and the interval that the agent reported as set. */
  readonly syncSeed: { readonly asked: number; readonly set: number | null } | null;
  readonly maasUrl: string;
  readonly siteStatus: MaasSite["status"];
  readonly hostInterface: string;
  /** The time at which the hub last began to read all machines of the site from MAAS; null if the hub could not parse the node's machine. */
  readonly lastSweepAt: Date | null;
  readonly heldBy: string | null;
  /** The newest request to switch the power of the node's machine. */
  readonly power: PowerAction | null;
}

/**
 * Selects nodes with the recorded drift `powered_off` (MAAS reports the machine as off), which is no longer true as soon as the node's agent makes
 * contact. The reconciler judges a node with the drift `powered_off` at every poll, because an agent's contact does not mark the node's row as
 * changed.
 */
const DISPROVED_BY_CONTACT = sql`${nodeMaasState.driftDetails} ->> 'rule' = 'powered_off'`;

/**
 * The idempotency keys of all tasks that renew a host's hardware sync begin with `hw-sync-reseed/`, and an index covers the idempotency keys of a
 * node's tasks.
 */
const LAST_SEED = sql<DriftRow["syncSeed"]>`(
  select jsonb_build_object('asked', t.input -> 'interval_seconds', 'set', t.result -> 'interval_seconds')
  from tasks t where t.node_id = ${nodes.id} and t.idempotency_key like 'hw-sync-reseed/%' and t.state = 'succeeded'
  order by t.finished_at desc limit 1)`;

/** Reads bound nodes of a site: all nodes, one node, or the nodes whose facts changed since the reconciler judged them. */
export async function readDriftRows(db: Db | Tx, siteId: SiteId, scope: "due" | "all" | NodeId): Promise<DriftRow[]> {
  const onboarded = db
    .selectDistinctOn([nodeOnboardings.nodeId], {
      nodeId: nodeOnboardings.nodeId,
      profileId: nodeOnboardings.profileId,
    })
    .from(nodeOnboardings)
    .where(eq(nodeOnboardings.siteId, siteId))
    .orderBy(nodeOnboardings.nodeId, sql`${nodeOnboardings.createdAt} desc`)
    .as("onboarded");
  const due = or(isNotNull(nodeMaasState.reconcileDueAt), and(nodeMaasState.driftDetected, DISPROVED_BY_CONTACT));
  const which = scope === "all" ? undefined : scope === "due" ? due : eq(nodes.id, scope);
  const rows = await db
    .select({
      state: nodeMaasState,
      node: {
        id: nodes.id,
        hostname: nodes.hostname,
        status: nodes.status,
        host: nodes.host,
        onboardingMode: nodes.onboardingMode,
        generation: nodes.generation,
      },
      machine: maasMachines,
      session: { lastSeenAt: agentSessions.lastSeenAt, state: agentSessions.state },
      policy: {
        requireHwSync: maasSiteProfiles.requireHwSync,
        hardwareSyncIntervalSeconds: maasSiteProfiles.hardwareSyncIntervalSeconds,
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
    .leftJoin(onboarded, eq(onboarded.nodeId, nodes.id))
    .leftJoin(nodeAdoptions, eq(nodeAdoptions.nodeId, nodes.id))
    .leftJoin(
      maasSiteProfiles,
      sql`${maasSiteProfiles.id} = coalesce(${onboarded.profileId}, ${nodeAdoptions.profileId})`,
    )
    .leftJoin(workflowSubjects, holdsTheNode)
    .where(and(eq(nodeMaasState.siteId, siteId), which));
  const powers = await newestPowerActions(
    db,
    rows.map(({ node }) => node.id),
  );
  return rows.map((row) => ({ ...row, power: powers.get(row.node.id) ?? null }));
}

/** Returns the hardware-sync interval of the site's default profile; null if the site is disabled or the profile requires no hardware sync. */
export async function siteSyncInterval(db: Db, siteId: SiteId): Promise<number | null> {
  const [row] = await db
    .select({ seconds: maasSiteProfiles.hardwareSyncIntervalSeconds })
    .from(maasSites)
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, maasSites.defaultProfileId))
    .where(and(eq(maasSites.id, siteId), eq(maasSites.status, "active"), eq(maasSiteProfiles.requireHwSync, true)));
  return row?.seconds ?? null;
}

/**
 * Counts the nodes that are in service and bound to one of the machines `systemIds`. MAAS no longer lists the machines in `systemIds`, but has not
 * yet confirmed that these machines are gone.
 */
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

/** Counts the machines in MAAS that belong to no node (lifecycle 6.4). */
export async function countUnmanaged(db: Db, siteId: SiteId): Promise<number> {
  const { rows } = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from maas_machines m
    where m.site_id = ${siteId}::uuid and not m.absent and not exists (
      select from node_maas_state s where s.site_id = m.site_id and s.maas_system_id = m.system_id)`);
  return rows[0]?.count ?? 0;
}

/**
 * Locks the rows of nodes and then the rows of their bindings to machines, and returns the bindings. All code of the hub locks the rows of nodes
 * before the rows of bindings to machines, to prevent deadlocks.
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

/** No workflow can take a node while a transaction holds a lock on the node's row. */
export async function heldAmong(tx: Tx, nodeIds: readonly NodeId[]): Promise<Set<NodeId>> {
  const rows = await tx
    .select({ id: nodes.id })
    .from(nodes)
    .innerJoin(workflowSubjects, holdsTheNode)
    .where(inArray(nodes.id, [...nodeIds]));
  return new Set(rows.map((row) => row.id));
}
