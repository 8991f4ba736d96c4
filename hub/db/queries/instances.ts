import type { AllocationId, NodeId } from "../../../shared/ids.ts";
import { isReadInFull } from "../../../shared/machine-details.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { RecordVerdict } from "../../../shared/sanitization-record.ts";
import { FAILED_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { and, eq, inArray, sql } from "../orm.ts";
import { allocations, maasMachines, nodeMaasState, nodes, workflows } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db } from "../tx.ts";

/** What the tables say about the host of an allocation, beside the node's readiness. */
export interface InstanceHost {
  readonly hasFailedTurnover: boolean;
  readonly powerState: string | null;
  readonly zone: string | null;
}

/** Returns the hosts of the allocations, by one SQL statement for any number of allocations. */
export async function readInstanceHosts(
  db: Db,
  ids: readonly AllocationId[],
): Promise<ReadonlyMap<AllocationId, InstanceHost>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({
      id: allocations.id,
      turnover: workflows.status,
      powerState: maasMachines.powerState,
      details: maasMachines.details,
    })
    .from(allocations)
    .leftJoin(nodes, eq(nodes.id, allocations.nodeId))
    .leftJoin(workflows, eq(workflows.id, allocations.decommissionId))
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .leftJoin(
      maasMachines,
      and(eq(maasMachines.siteId, nodes.siteId), eq(maasMachines.systemId, nodeMaasState.maasSystemId)),
    )
    .where(inArray(allocations.id, [...ids]));
  const failed: readonly string[] = FAILED_WORKFLOW_STATUSES;
  return new Map(
    rows.map(({ id, turnover, powerState, details }) => [
      id,
      {
        hasFailedTurnover: turnover !== null && failed.includes(turnover),
        powerState,
        zone: details !== null && isReadInFull(details) && details.zone !== "" ? details.zone : null,
      },
    ]),
  );
}

/** A row of what happened to a machine. Only the fields of its kind are not null. */
export interface HistoryRow {
  readonly what: "moved" | "tenancy_began" | "tenancy_ended" | "sanitized";
  readonly at: Date;
  readonly toStatus: NodeStatus | null;
  readonly tenant: string | null;
  readonly verdict: RecordVerdict | null;
  readonly message: string;
}

interface Raw {
  [column: string]: unknown;
  readonly what: HistoryRow["what"];
  readonly at: string;
  readonly to_status: NodeStatus | null;
  readonly tenant: string | null;
  readonly verdict: RecordVerdict | null;
  readonly message: string;
}

/** Returns what changed a machine's status, the newest first: moves of the node, tenancies, and sanitization records. */
export async function listHistory(db: Db, nodeId: NodeId, most: number): Promise<HistoryRow[]> {
  const { rows } = await db.execute<Raw>(sql`
    select * from (
      select 'moved' as what, occurred_at as at, to_status, null::text as tenant, null::text as verdict, message, 0 as rank, id as place
        from node_events where node_id = ${nodeId} and type in ('created', 'status_changed') and to_status is not null
      union all
      select 'tenancy_began', created_at, null, tenant, null, '', 1, 0 from allocations where node_id = ${nodeId}
      union all
      select 'sanitized', created_at, null, null, verdict, '', 2, sequence from sanitization_records where node_id = ${nodeId}
      union all
      select 'tenancy_ended', ended_at, null, tenant, null, '', 3, 0
        from allocations where node_id = ${nodeId} and ended_at is not null) happened
    order by at desc, rank desc, place desc limit ${most}`);
  return rows.map(({ at, to_status: toStatus, what, tenant, verdict, message }) => ({
    what,
    at: toDate(at),
    toStatus,
    tenant,
    verdict,
    message,
  }));
}
