import type { NodeId, TaskId } from "../../../shared/ids.ts";
import { COMPARED_ITEMS } from "../../../shared/residue/items.ts";
import type { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import { and, eq, inArray, lt, sql } from "../orm.ts";
import {
  agentSessions,
  allocations,
  type NodeBaseline,
  nodeBaselines,
  nodes,
  type Task,
  tasks,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { pastIsUnknown } from "./node-adoptions.ts";
import { hasNoPartInSystem } from "./reinstalls.ts";

/** The field `task` is null if retention has removed the newest task that was to take the node's baseline (the snapshot of its clean system). */
export interface BaselineWithTask {
  readonly baseline: NodeBaseline;
  readonly task: Pick<Task, "state" | "errorCode" | "errorMessage"> | null;
}

export async function readBaseline(db: Db | Tx, nodeId: NodeId, generation: number): Promise<BaselineWithTask | null> {
  const [row] = await db
    .select({
      baseline: nodeBaselines,
      task: { state: tasks.state, errorCode: tasks.errorCode, errorMessage: tasks.errorMessage },
    })
    .from(nodeBaselines)
    .leftJoin(tasks, eq(tasks.id, nodeBaselines.taskId))
    .where(and(eq(nodeBaselines.nodeId, nodeId), eq(nodeBaselines.generation, generation)));
  return row ?? null;
}

export interface Tenancy {
  readonly open: boolean;
  readonly count: number;
  /** The number of ended allocations after which the host's cleaning did not complete, so that nothing proves that the host is clean. */
  readonly unclean: number;
}

export async function readTenancy(db: Db | Tx, nodeId: NodeId, generation: number): Promise<Tenancy> {
  const [row] = await db
    .select({
      open: sql<boolean>`coalesce(bool_or(${allocations.status} <> 'ended'), false)`,
      count: sql<number>`count(*)::int`,
      unclean: sql<number>`(count(*) filter (where ${allocations.status} = 'ended'
        and (${allocations.endForced} or ${workflows.status} is distinct from 'completed')))::int`,
    })
    .from(allocations)
    .leftJoin(workflows, eq(workflows.id, allocations.decommissionId))
    .where(and(eq(allocations.nodeId, nodeId), eq(allocations.generation, generation)));
  return row ?? { open: false, count: 0, unclean: 0 };
}

/**
 * True for an allocation `a` whose tenant used the system that the host runs now, because MAAS has not released that system. The generation alone
 * does not tell which system a tenant used, because a person can enroll an installed system in a new generation.
 */
const ofInstalledSystem = sql`a.generation > coalesce((
  select max(greatest(d.released_generation, d.reinstalled_generation)) from node_decommissions d where d.node_id = a.node_id), -1)`;
/**
 * True for an allocation `a` whose tenant may use, or have used, the system that the host runs now. An allocation stays open until the host's
 * cleaning after the tenant is complete, although a reimage may already have replaced the tenant's system. In a reinstall, the allocation's tenant
 * does not use the host's system between the machine's release and the hub's order to make the tenant's account on the new system.
 */
const touchesSystem = sql`(a.status not in ('ending', 'ended') and not ${hasNoPartInSystem} or ${ofInstalledSystem})`;
/** True if a tenant may use, or have used, the system that the node's host runs now. */
export async function isUsedByTenant(db: Db | Tx, nodeId: NodeId): Promise<boolean> {
  const { rows } = await db.execute<{ used: boolean }>(
    sql`select exists (select 1 from allocations a where a.node_id = ${nodeId} and ${touchesSystem}) as used`,
  );
  return rows[0]?.used !== false;
}

const tenancyOf = sql`select 1 from allocations a where a.node_id = n.id and ${touchesSystem}`;

/**
 * Returns active nodes with a connected agent whose present system never had a tenant and of whose generation the hub has no baseline (snapshot of
 * the clean system). The present system of an adopted node may have had a tenant before the adoption, so the hub takes the node's first baseline
 * (snapshot of a clean system) after a reimage. `lockNodesWithoutBaseline` locks the rows of the nodes that it returns, and leaves out nodes whose
 * rows another hub has locked.
 */
export async function lockNodesWithoutBaseline(
  tx: Tx,
  limit: number,
  only: NodeId | null = null,
): Promise<{ id: NodeId; generation: number }[]> {
  const { rows } = await tx.execute<{ id: NodeId; generation: number }>(sql`
    select n.id, n.generation from nodes n
    join agent_sessions s on s.node_id = n.id and s.state = 'open' and s.generation = n.generation
    where n.status = 'active' and (${only}::uuid is null or n.id = ${only}::uuid)
      and not exists (select 1 from node_baselines b where b.node_id = n.id and b.generation = n.generation)
      and not exists (${tenancyOf}) and not ${pastIsUnknown(sql`n.id`)}
    order by n.id limit ${limit} for update of n skip locked`);
  return rows;
}

/**
 * SQL for those items of the host's state that a soft reset compares but that a node's baseline snapshot lacks (`BaselineLack`); the SQL does not
 * read the large snapshot.
 */
export const baselineLack = sql<string[] | null>`case when ${nodeBaselines.snapshot} is null then null else array(
  select item from unnest(${sql.param(COMPARED_ITEMS)}::text[]) item where not ${nodeBaselines.knownItems} ? item) end`;

/**
 * Returns, for each node, the items of the host's state that a soft reset compares but that the node's snapshot of its clean system lacks. The map
 * that `readBaselineLacks` returns has no entry for a node without a snapshot of its clean system.
 */
export async function readBaselineLacks(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, readonly string[]>> {
  const rows = await db
    .select({ nodeId: nodeBaselines.nodeId, lack: baselineLack })
    .from(nodeBaselines)
    .innerJoin(nodes, and(eq(nodes.id, nodeBaselines.nodeId), eq(nodes.generation, nodeBaselines.generation)))
    .where(inArray(nodes.id, [...nodeIds]));
  return new Map(rows.flatMap(({ nodeId, lack }) => (lack === null ? [] : [[nodeId, lack]])));
}

/**
 * True for a baseline `b` whose snapshot lacks an item that a soft reset compares, if the agent of the session `s` has another version than the agent
 * that took the snapshot. A soft reset cannot compare an item of the host's state that the snapshot of the clean system lacks. PostgreSQL reads the
 * large baseline snapshot only if the connected agent has another version than the agent that took the snapshot.
 */
const isOutdated = sql`case when b.snapshot is null or b.agent_version is not distinct from s.agent_version then false
  else not (b.snapshot ?& ${sql.param(COMPARED_ITEMS)}::text[]) end`;

/**
 * Finds and locks baselines that have no snapshot of the clean system, or whose snapshot, taken by an agent of another version, lacks items that a
 * soft reset compares. `lockFailedBaselines` finds a baseline only if the newest task for its snapshot is gone, or ended more than `afterSeconds` ago
 * without a snapshot that the hub can use.
 */
export async function lockFailedBaselines(
  tx: Tx,
  afterSeconds: number,
  limit: number,
): Promise<{ id: NodeId; generation: number }[]> {
  const { rows } = await tx.execute<{ id: NodeId; generation: number }>(sql`
    select n.id, n.generation from node_baselines b
    join nodes n on n.id = b.node_id and n.generation = b.generation and n.status = 'active'
    join agent_sessions s on s.node_id = n.id and s.state = 'open' and s.generation = n.generation
    left join tasks t on t.id = b.task_id
    where (b.snapshot is null or ${isOutdated}) and not exists (${tenancyOf}) and not ${pastIsUnknown(sql`n.id`)}
      and (t.id is null or t.finished_at < now() - make_interval(secs => ${afterSeconds}))
      and (t.id is null or t.state <> 'succeeded' or b.problem is not null or b.taken_task_id = t.id)
    order by n.id limit ${limit} for update of b skip locked`);
  return rows;
}

export interface BaselineRequest {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly taskId: TaskId;
  readonly requestedBy: string;
  readonly reason: string;
}

/**
 * Records the newest task that is to take a node's baseline (the snapshot of its clean system), and removes the baselines of earlier generations. A
 * snapshot that the node's baseline already has stays in the row when a new task for the baseline is recorded.
 */
export async function requestBaselineRow(tx: Tx, request: BaselineRequest): Promise<void> {
  const { nodeId, generation, ...asked } = request;
  await tx
    .insert(nodeBaselines)
    .values(request)
    .onConflictDoUpdate({
      target: [nodeBaselines.nodeId, nodeBaselines.generation],
      set: { ...asked, requestedAt: sql`now()`, problem: null },
    });
  await tx.delete(nodeBaselines).where(and(eq(nodeBaselines.nodeId, nodeId), lt(nodeBaselines.generation, generation)));
}

export interface BaselineResult {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly taskId: TaskId;
  readonly result: unknown;
  readonly finishedAt: Date | null;
  readonly agentVersion: string | null;
  /**
   * True if a tenant may have had an account on the host between the creation of the task that takes the baseline's snapshot and the task's result.
   * An account that the agent made only after the task's result is not in the snapshot of the clean system.
   */
  readonly allocated: boolean;
}

export async function lockBaselineResults(
  tx: Tx,
  limit: number,
  only: NodeId | null = null,
): Promise<BaselineResult[]> {
  return tx
    .select({
      nodeId: nodeBaselines.nodeId,
      generation: nodeBaselines.generation,
      taskId: nodeBaselines.taskId,
      result: tasks.result,
      finishedAt: tasks.finishedAt,
      agentVersion: agentSessions.agentVersion,
      allocated: sql<boolean>`exists (select 1 from ${allocations} a
        join ${tasks} g on g.node_id = a.node_id and g.type = 'allocation.grant_user' and g.created_at >= a.created_at
        where a.node_id = ${nodeBaselines.nodeId} and ${touchesSystem}
        and coalesce(a.ended_at >= ${tasks.createdAt}, true) and g.started_at <= ${tasks.finishedAt})`,
    })
    .from(nodeBaselines)
    .innerJoin(nodes, and(eq(nodes.id, nodeBaselines.nodeId), eq(nodes.generation, nodeBaselines.generation)))
    .innerJoin(tasks, and(eq(tasks.id, nodeBaselines.taskId), eq(tasks.state, "succeeded")))
    .leftJoin(agentSessions, eq(agentSessions.nodeId, nodeBaselines.nodeId))
    .where(
      and(
        sql`${nodeBaselines.takenTaskId} is distinct from ${nodeBaselines.taskId}`,
        sql`${nodeBaselines.problem} is null`,
        only === null ? undefined : eq(nodeBaselines.nodeId, only),
      ),
    )
    .limit(limit)
    .for("update", { of: nodeBaselines, skipLocked: true });
}

type BaselineKey = Pick<BaselineResult, "nodeId" | "generation">;
const isRow = ({ nodeId, generation }: BaselineKey) =>
  and(eq(nodeBaselines.nodeId, nodeId), eq(nodeBaselines.generation, generation));

export async function storeBaseline(
  tx: Tx,
  { taskId, finishedAt, agentVersion, ...key }: Omit<BaselineResult, "result" | "allocated">,
  { bootId, snapshot }: { readonly bootId: string; readonly snapshot: ResidueSnapshot },
): Promise<void> {
  const taken = { takenAt: finishedAt, takenTaskId: taskId, agentVersion, bootId, snapshot };
  await tx.update(nodeBaselines).set(taken).where(isRow(key));
}

export async function refuseBaseline(tx: Tx, key: BaselineKey, problem: string): Promise<void> {
  await tx.update(nodeBaselines).set({ problem }).where(isRow(key));
}
