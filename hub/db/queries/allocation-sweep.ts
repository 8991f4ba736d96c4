/** The queries with which a hub regularly finds the allocations that it must continue or end. */
import { RESTORED } from "../../../shared/health-report.ts";
import type { AllocationId } from "../../../shared/ids.ts";
import { type SQL, sql } from "../orm.ts";
import {
  allocations,
  nodeDecommissions,
  nodeHealthOverrides,
  nodes,
  tasks,
  workflowSubjects,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface IdPage {
  readonly after: AllocationId | null;
  readonly limit: number;
}
const onPage = ({ after, limit }: IdPage): SQL =>
  sql`(${after}::uuid is null or a.id > ${after}::uuid) order by a.id limit ${limit}`;

const isSettled = sql`a.status = 'granting' and not exists (select 1 from ${tasks} t where t.id = a.grant_task_id
  and t.state in ('queued', 'offered', 'running', 'cancelling'))`;

/**
 * True if the allocation is still `granting`, and its task that makes the tenant's account has ended or is missing. Another hub may have changed the
 * allocation's status since `findSettledGrants` returned its id.
 */
export async function isSettledGrant(tx: Tx, id: AllocationId): Promise<boolean> {
  const { rows } = await tx.execute(sql`select 1 from ${allocations} a where a.id = ${id} and ${isSettled}`);
  return rows.length > 0;
}

/** Returns the ids of `granting` allocations whose task `allocation.grant_user` has ended or is missing. */
export async function findSettledGrants(db: Db, page: IdPage): Promise<AllocationId[]> {
  const { rows } = await db.execute<{ id: AllocationId }>(
    sql`select a.id from ${allocations} a where ${isSettled} and ${onPage(page)}`,
  );
  return rows.map(({ id }) => id);
}

/**
 * Returns the allocations whose planned end has passed and whose node no operation holds except a reinstall, because a tenant's time can also end
 * during a reinstall. After a restore of the database, `findPastEnds` leaves out an allocation until a person has checked its host, which may have
 * another tenant since.
 */
export async function findPastEnds(db: Db, page: IdPage): Promise<AllocationId[]> {
  const { rows } = await db.execute<{ id: AllocationId }>(sql`
    select a.id from ${allocations} a join ${nodes} n on n.id = a.node_id
    where a.status in ('granting', 'active', 'failed') and a.ends_at <= now()
      and n.status in ('active', 'offline', 'quarantined', 'enrolling')
      and not exists (select 1 from ${workflowSubjects} s join ${nodeDecommissions} d on d.decommission_id = s.workflow_id
        where s.subject = 'node:' || a.node_id and d.mode <> 'reinstall')
      and not exists (select 1 from ${nodeHealthOverrides} o where o.node_id = a.node_id and o.source = ${RESTORED})
      and ${onPage(page)}`);
  return rows.map(({ id }) => id);
}

/**
 * Returns the allocations that the hub should end now: those past their planned end, and those in `ending` for which no decommission that cleans the
 * host has begun. `findDueEnds` leaves out an allocation while a workflow holds its node, or while its node is neither `active`, `offline` nor
 * `quarantined`. After a restore of the database, `findDueEnds` also leaves out an allocation until a person has checked its host, which may have
 * another tenant since.
 */
export async function findDueEnds(db: Db, page: IdPage): Promise<AllocationId[]> {
  const { rows } = await db.execute<{ id: AllocationId }>(sql`
    select a.id from ${allocations} a join ${nodes} n on n.id = a.node_id
    where ((a.status in ('granting', 'active', 'failed') and a.ends_at <= now())
        or (a.status = 'ending' and a.decommission_id is null))
      and n.status in ('active', 'offline', 'quarantined')
      and not exists (select 1 from ${workflowSubjects} s where s.subject = 'node:' || a.node_id)
      and not exists (select 1 from ${nodeHealthOverrides} o where o.node_id = a.node_id and o.source = ${RESTORED})
      and ${onPage(page)}`);
  return rows.map(({ id }) => id);
}

/**
 * Returns open allocations whose account cannot exist any more: the node was deleted, or MAAS has released the system with the account.
 * `findHostsGone` leaves out an allocation while the decommission that cleans its host runs, because that decommission ends the allocation.
 */
export async function findHostsGone(db: Db, page: IdPage): Promise<AllocationId[]> {
  const { rows } = await db.execute<{ id: AllocationId }>(sql`
    select a.id from ${allocations} a
    where a.status <> 'ended' and (
      not exists (select 1 from ${nodes} n where n.id = a.node_id and n.status <> 'deleted')
      or exists (select 1 from ${nodeDecommissions} d where d.node_id = a.node_id and d.released_generation >= a.generation))
      and not exists (select 1 from ${workflowSubjects} s where s.workflow_id = a.decommission_id)
      and ${onPage(page)}`);
  return rows.map(({ id }) => id);
}
