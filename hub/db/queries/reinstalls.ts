import type { AllocationId, NodeId } from "../../../shared/ids.ts";
import { TERMINAL_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { and, desc, eq, inArray, isNotNull, ne, notInArray, sql } from "../orm.ts";
import {
  type AllocationRow,
  allocations,
  type Node,
  nodeDecommissions,
  type Task,
  tasks,
  type Workflow,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { hasLiveCertificate } from "./node-certificates.ts";
import { isPlan } from "./tasks.ts";

/**
 * SQL that is true for an allocation `a` whose login account is gone, because a reinstall has taken away the host's system on which the account was.
 * When the hub orders the account on the new system, the allocation gets the new generation, and only the agent's success, which proves the account,
 * gives the allocation a `grant_task_id` again.
 */
export const isLostToReinstall = sql<boolean>`(a.reinstalled_generation is not null
  and (a.reinstalled_generation >= a.generation or a.grant_task_id is null))`;

/** SQL that is true for an allocation `a` whose system a reinstall has released, and whose account the hub has not yet ordered on a new system. */
export const hasNoPartInSystem = sql`coalesce(a.reinstalled_generation >= a.generation, false)`;

/**
 * Decides, for an allocation's row that was read before, whether a reinstall has taken the tenant's account away, as the SQL `isLostToReinstall`
 * does.
 */
export const isAccountLost = ({
  reinstalledGeneration: released,
  generation,
  grantTaskId,
}: Pick<AllocationRow, "reinstalledGeneration" | "generation" | "grantTaskId">): boolean =>
  released !== null && (released >= generation || grantTaskId === null);

/**
 * True if a reinstall has released the machine since the allocation was made, so that its disks may hold data that the snapshot of the clean new
 * system does not show.
 */
export const wasReinstalled = ({ reinstalledGeneration }: Pick<AllocationRow, "reinstalledGeneration">): boolean =>
  reinstalledGeneration !== null;

/**
 * Returns the newest task that orders the allocation's account with a `lowest_uid`, whichever operation queued the task. A task with `plan: true` is
 * a dry run and makes no account, so `newestGrant` leaves it out.
 */
export async function newestGrant(tx: Tx, nodeId: NodeId, id: AllocationId): Promise<Task | null> {
  const [row] = await tx
    .select()
    .from(tasks)
    .where(
      and(
        eq(tasks.nodeId, nodeId),
        eq(tasks.type, "allocation.grant_user"),
        sql`${tasks.input}->>'allocation_id' = ${id}`,
        sql`jsonb_exists(${tasks.input}, 'lowest_uid')`,
        sql`not ${isPlan()}`,
      ),
    )
    .orderBy(desc(tasks.createdAt), desc(tasks.id))
    .limit(1);
  return row ?? null;
}

/** The serial numbers of the disks in the snapshots of the clean host that were taken before the reinstalls for the node's open allocation. */
export async function disksBeforeReinstall(db: Db | Tx, nodeId: NodeId): Promise<readonly string[]> {
  const [row] = await db
    .select({ disks: allocations.disksBefore })
    .from(allocations)
    .where(and(eq(allocations.nodeId, nodeId), ne(allocations.status, "ended")));
  return row?.disks ?? [];
}

/**
 * True if a reinstall for the node's present tenant has taken the node's system away and left no system whose agent could do anything: the present
 * generation was released, never enrolled, or lost its certificate when the reinstall was cancelled.
 */
export async function hasNoSystemSinceReinstall(
  tx: Tx,
  { id, generation }: Pick<Node, "id" | "generation">,
): Promise<boolean> {
  const rows = await tx
    .select({ id: allocations.id })
    .from(allocations)
    .where(
      and(eq(allocations.nodeId, id), ne(allocations.status, "ended"), isNotNull(allocations.reinstalledGeneration)),
    );
  return rows.length > 0 && !(await hasLiveCertificate(tx, id, generation));
}

/** What the tenant of an instance needs to know about an unfinished reinstall. */
export type OpenReinstall = Pick<Workflow, "id" | "status">;

/** Returns the unfinished reinstalls of the nodes; an unfinished reinstall holds its node. */
export async function openReinstallsOf(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, OpenReinstall>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .select({
      nodeId: nodeDecommissions.nodeId,
      id: workflows.id,
      status: workflows.status,
    })
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .where(
      and(
        inArray(nodeDecommissions.nodeId, [...nodeIds]),
        eq(nodeDecommissions.mode, "reinstall"),
        notInArray(workflows.status, [...TERMINAL_WORKFLOW_STATUSES]),
      ),
    );
  return new Map(rows.map(({ nodeId, ...row }) => [nodeId, row]));
}
