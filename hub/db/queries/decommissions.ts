import type { Decommission, DecommissionDetail } from "../../../shared/api/decommissions.ts";
import type { BatchId, NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode, DecommissionStage, StatusFilter } from "../../../shared/workflow-status.ts";
import { and, desc, eq, inArray, type SQL, type SQLWrapper, sql } from "../orm.ts";
import {
  type ChosenSecret,
  type MaasSiteProfile,
  maasSiteProfiles,
  type Node,
  type NodeDecommission,
  nodeDecommissions,
  nodeMaasState,
  nodes,
  type Sku,
  skus,
  type Workflow,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { listStageEvents } from "./workflow-events.ts";
import { hasStatus, isoOrNull, requestedAtText, requestedBefore, toProgress, toStageEvent } from "./workflow-views.ts";
import { wakeRunning } from "./workflow-wakes.ts";

/** The caller of `insertDecommissions` has already written the rows of `workflows` with the decommissions' ids. */
export async function insertDecommissions(
  tx: Tx,
  rows: readonly (typeof nodeDecommissions.$inferInsert)[],
): Promise<void> {
  await tx.insert(nodeDecommissions).values([...rows]);
}

type Released = Pick<NodeDecommission, "mode" | "releasedGeneration" | "reinstalledGeneration">;

/** The generation whose installed system the operation has released in MAAS; null while Muster has seen no release. */
export const generationReleasedBy = (of: Released): number | null =>
  of.mode === "reinstall" ? of.reinstalledGeneration : of.releasedGeneration;

/**
 * The argument `generation` is null if a decommission begins again after a new deploy, because the decommission has not released the new system yet.
 */
export async function recordMachineReleased(tx: Tx, id: WorkflowId, generation: number | null): Promise<void> {
  const { mode, releasedGeneration, reinstalledGeneration } = nodeDecommissions;
  await tx
    .update(nodeDecommissions)
    .set({
      releasedGeneration: sql`case when ${mode} = 'reinstall' then ${releasedGeneration} else ${generation}::int end`,
      reinstalledGeneration: sql`case when ${mode} = 'reinstall' then ${generation}::int else ${reinstalledGeneration} end`,
    })
    .where(eq(nodeDecommissions.decommissionId, id));
}

export async function writeSecrets(tx: Tx, id: WorkflowId, secrets: readonly ChosenSecret[]): Promise<void> {
  await tx.update(nodeDecommissions).set({ secrets }).where(eq(nodeDecommissions.decommissionId, id));
}

type Row = { decommission: NodeDecommission; workflow: Workflow };
const columns = { decommission: nodeDecommissions, workflow: workflows };

/** Makes the API's view of a decommission from the request and the workflow's row (lifecycle 5.7). */
function toDecommission({ decommission, workflow }: Row): Decommission {
  return {
    decommission_id: decommission.decommissionId,
    batch_id: workflow.batchId,
    node_id: decommission.nodeId,
    site_id: decommission.siteId,
    hostname: decommission.hostname,
    maas_system_id: decommission.maasSystemId,
    mode: decommission.mode,
    reason: decommission.reason,
    forced_at: isoOrNull(decommission.forcedAt),
    forced_by: decommission.forcedBy,
    forced_reason: decommission.forcedReason,
    ...toProgress(workflow),
    current_stage: workflow.stage as DecommissionStage,
  };
}

export async function readDecommission(db: Db | Tx, id: WorkflowId): Promise<DecommissionDetail | null> {
  const [row] = await db
    .select(columns)
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .where(eq(nodeDecommissions.decommissionId, id));
  if (row === undefined) return null;
  const events = await listStageEvents(db, id);
  return { ...toDecommission(row), events: events.map(toStageEvent) };
}

export interface DecommissionFilter {
  readonly batchId?: BatchId | undefined;
  readonly nodeId?: NodeId | undefined;
  readonly siteId?: SiteId | undefined;
  readonly mode?: DecommissionMode | undefined;
  readonly status?: StatusFilter | undefined;
  readonly hostname?: string | undefined;
  readonly reach: Reach;
}

export async function listDecommissions(
  db: Db | Tx,
  filter: DecommissionFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ decommission: Decommission; at: string }[]> {
  const conditions: (SQL | undefined)[] = [
    filter.batchId === undefined ? undefined : eq(workflows.batchId, filter.batchId),
    filter.nodeId === undefined ? undefined : eq(nodeDecommissions.nodeId, filter.nodeId),
    filter.siteId === undefined ? undefined : eq(nodeDecommissions.siteId, filter.siteId),
    filter.mode === undefined ? undefined : eq(nodeDecommissions.mode, filter.mode),
    filter.status === undefined ? undefined : hasStatus(filter.status),
    filter.hostname === undefined ? undefined : eq(nodeDecommissions.hostname, filter.hostname),
    isWithin(filter.reach, { site: nodeDecommissions.siteId }),
    page.before === null ? undefined : requestedBefore(page.before),
  ];
  const rows = await db
    .select({ ...columns, at: requestedAtText })
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .where(and(...conditions))
    .orderBy(desc(workflows.requestedAt), desc(workflows.id))
    .limit(page.limit);
  return rows.map((row) => ({ decommission: toDecommission(row), at: row.at }));
}

export interface DecommissionRows {
  readonly decommission: NodeDecommission;
  /** The row of the decommission's node; a removed node keeps its row, with the status `deleted`. */
  readonly node: Node;
  readonly boundSystemId: string | null;
  /** The profile of the node's last onboarding; null for a node that joined Muster without an onboarding. */
  readonly profile: MaasSiteProfile | null;
  /** The GPU vendor of the node's SKU; null if the SKU does not exist any more. */
  readonly gpuVendor: Sku["gpuVendor"] | null;
}

/** One SQL statement reads all rows that the stages of a decommission need. */
export async function readDecommissionRows(db: Db | Tx, id: WorkflowId): Promise<DecommissionRows | null> {
  const [rows] = await db
    .select({
      decommission: nodeDecommissions,
      node: nodes,
      boundSystemId: nodeMaasState.maasSystemId,
      profile: maasSiteProfiles,
      gpuVendor: skus.gpuVendor,
    })
    .from(nodeDecommissions)
    .innerJoin(nodes, eq(nodes.id, nodeDecommissions.nodeId))
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .leftJoin(maasSiteProfiles, eq(maasSiteProfiles.id, profileOf(nodes.id)))
    .leftJoin(skus, eq(skus.id, nodes.sku))
    .where(eq(nodeDecommissions.decommissionId, id));
  return rows ?? null;
}

/** SQL for the profile of the node's last onboarding, of its adoption, or of the newest attempt to provision its host externally. */
export const profileOf = (nodeId: SQLWrapper): SQL => sql`coalesce(
  (select o.profile_id from node_onboardings o where o.node_id = ${nodeId} order by o.created_at desc limit 1),
  (select a.profile_id from node_adoptions a where a.node_id = ${nodeId}),
  (select e.profile_id from external_attempts e where e.node_id = ${nodeId} order by e.number desc limit 1))`;

/** Returns those of the nodes that an onboarding or an adoption gave a profile. */
export async function nodesWithProfile(db: Db | Tx, ids: readonly NodeId[]): Promise<ReadonlySet<NodeId>> {
  const rows = await db
    .select({ nodeId: nodes.id })
    .from(nodes)
    .where(and(inArray(nodes.id, [...ids]), sql`${profileOf(nodes.id)} is not null`));
  return new Set(rows.map(({ nodeId }) => nodeId));
}

export async function readMaasSystemId(db: Db | Tx, nodeId: NodeId): Promise<string | null> {
  const [row] = await db
    .select({ id: nodeMaasState.maasSystemId })
    .from(nodeMaasState)
    .where(eq(nodeMaasState.nodeId, nodeId));
  return row?.id ?? null;
}

export async function readBmcAddress(tx: Tx, nodeId: NodeId): Promise<string | null> {
  const [row] = await tx
    .select({ ipmiIp: nodeMaasState.ipmiIp })
    .from(nodeMaasState)
    .where(eq(nodeMaasState.nodeId, nodeId));
  return row?.ipmiIp ?? null;
}

/** Returns the status that the node had at the request of its last drain, or null if the node was never drained. */
export async function readPriorStatus(tx: Tx, nodeId: NodeId): Promise<NodeStatus | null> {
  const [row] = await tx
    .select({ status: nodeDecommissions.priorStatus })
    .from(nodeDecommissions)
    .where(and(eq(nodeDecommissions.nodeId, nodeId), inArray(nodeDecommissions.mode, ["drain", "full_decommission"])))
    .orderBy(desc(nodeDecommissions.createdAt))
    .limit(1);
  return row?.status ?? null;
}

/**
 * Records that an operator forces a decommission (lifecycle 5.8), and lets a running decommission continue at once. If an operator has forced the
 * decommission already, the first operator's name, reason and time stay.
 */
export async function forceDecommission(tx: Tx, id: WorkflowId, by: { actor: string; reason: string }): Promise<void> {
  await tx
    .update(nodeDecommissions)
    .set({
      forcedAt: sql`coalesce(${nodeDecommissions.forcedAt}, now())`,
      forcedBy: sql`coalesce(${nodeDecommissions.forcedBy}, ${by.actor})`,
      forcedReason: sql`coalesce(${nodeDecommissions.forcedReason}, ${by.reason})`,
    })
    .where(eq(nodeDecommissions.decommissionId, id));
  await wakeRunning(tx, id);
}
