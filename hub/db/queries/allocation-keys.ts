import { RESTORED } from "../../../shared/health-report.ts";
import type { AllocationId, NodeId, SiteId, SshKeyGroupId, SshKeyId } from "../../../shared/ids.ts";
import { UNFINISHED_TASK_STATES } from "../../../shared/task-state.ts";
import { type SQL, sql } from "../orm.ts";
import {
  type AllocationRow,
  allocations,
  nodeHealthOverrides,
  nodes,
  sshKeyGroups,
  sshKeys,
  type Task,
  tasks,
  workflowSubjects,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import type { IdPage } from "./allocation-sweep.ts";
import { isLostToReinstall } from "./reinstalls.ts";

/** The stored SSH keys and key groups of an account, and the site where the account is. */
export interface NamedKeys {
  readonly sshKeyIds: readonly SshKeyId[];
  readonly sshKeyGroupIds: readonly SshKeyGroupId[];
  readonly siteId: SiteId | null;
}

/**
 * SQL for the SSH keys that the given stored keys and key groups contain now and that may be used at a site, the oldest key first. A key group that
 * may not be used at the site adds no key to the account.
 */
const keysOf = ({ keys, groups, site }: { readonly keys: SQL; readonly groups: SQL; readonly site: SQL }): SQL =>
  sql`array(select k.public_key from ${sshKeys} k where k.id = any(${keys} || coalesce((
    select array_agg(member) from ${sshKeyGroups} g, unnest(g.key_ids) member
    where g.id = any(${groups}) and (g.sites is null or ${site} = any(g.sites))), '{}'))
    and (k.sites is null or ${site} = any(k.sites)) order by k.created_at, k.id)`;

const ofAllocation = keysOf({ keys: sql`a.ssh_key_ids`, groups: sql`a.ssh_key_group_ids`, site: sql`a.site_id` });
const isNaming = sql`(a.ssh_key_ids <> '{}' or a.ssh_key_group_ids <> '{}')`;
const isLive = sql`a.status in ('granting', 'active', 'failed')`;

/** Returns the SSH keys that the given stored keys and key groups contain now for a site. */
export async function readNamedKeys(tx: Tx, { sshKeyIds, sshKeyGroupIds, siteId }: NamedKeys): Promise<string[]> {
  const wanted = keysOf({
    keys: sql`${sql.param([...sshKeyIds])}::uuid[]`,
    groups: sql`${sql.param([...sshKeyGroupIds])}::uuid[]`,
    site: sql`${siteId}::uuid`,
  });
  const { rows } = await tx.execute<{ keys: string[] }>(sql`select ${wanted} as keys`);
  return rows[0]?.keys ?? [];
}

/** Returns the SSH keys that an allocation should have now: those of its stored keys and key groups, or, if it names none, those of its request. */
export async function keysNow(tx: Tx, allocation: AllocationRow): Promise<string[]> {
  if (allocation.sshKeyIds.length + allocation.sshKeyGroupIds.length === 0) return allocation.sshKeys;
  return readNamedKeys(tx, allocation);
}

export interface WantedKeys {
  readonly id: AllocationId;
  readonly hostname: string;
  readonly wanted: number;
  /**
   * True if the SSH keys that the account should have differ from the keys that the agent was last ordered to set, or if a change of keys is already
   * due.
   */
  readonly isToOrder: boolean;
}

/** Returns the ids of a tenant's live allocations that name stored keys or key groups. */
export async function findNaming(tx: Tx, tenant: string): Promise<AllocationId[]> {
  const { rows } = await tx.execute<{ id: AllocationId }>(
    sql`select a.id from ${allocations} a where a.tenant = ${tenant} and ${isLive} and ${isNaming}`,
  );
  return rows.map(({ id }) => id);
}

/**
 * Returns the live ones of the given allocations, each with the number of SSH keys that its stored keys and key groups contain now. The number of
 * keys is 0 for an allocation that no longer names a stored key or key group. While `keys_due` is set, a new order is needed even if the allocation's
 * keys look right, because a transaction that has not committed may have ordered other keys.
 */
export async function readWantedKeys(tx: Tx, ids: readonly AllocationId[]): Promise<WantedKeys[]> {
  const { rows } = await tx.execute<{ id: AllocationId; hostname: string; wanted: number; to_order: boolean }>(sql`
    select w.id, w.hostname, cardinality(w.keys)::int as wanted, w.keys <> w.ordered or w.keys_due as to_order
    from (select a.id, a.hostname, a.ssh_keys as ordered, a.keys_due, ${ofAllocation} as keys from ${allocations} a
      where a.id = any(${sql.param([...ids])}::uuid[]) and ${isLive}) w order by w.id`);
  return rows.map(({ to_order: isToOrder, ...row }) => ({ ...row, isToOrder }));
}

const onPage = ({ after, limit }: IdPage): SQL =>
  sql`(${after}::uuid is null or a.id > ${after}::uuid) order by a.id limit ${limit}`;
const hasEnded = sql`not exists (select 1 from ${tasks} t where t.id = a.keys_task_id
  and t.state = any(${sql.param([...UNFINISHED_TASK_STATES])}::text[]))`;

const isSettled = sql`a.status = 'active' and a.keys_task_id is not null and ${hasEnded}`;
/**
 * Changed keys wait while the allocation's host is out of service or in an operation, and while a reinstall has removed its account. After a restore
 * of the database, changed keys also wait until a person has checked the host, which may have another tenant since.
 */
const isDue = sql`a.status = 'active' and a.keys_due and a.keys_task_id is null
  and exists (select 1 from ${nodes} n where n.id = a.node_id and n.status = 'active')
  and not exists (select 1 from ${workflowSubjects} s where s.subject = 'node:' || a.node_id) and not ${isLostToReinstall}
  and not exists (select 1 from ${nodeHealthOverrides} o where o.node_id = a.node_id and o.source = ${RESTORED})`;

const find =
  (which: SQL) =>
  async (db: Db, page: IdPage): Promise<AllocationId[]> => {
    const { rows } = await db.execute<{ id: AllocationId }>(
      sql`select a.id from ${allocations} a where ${which} and ${onPage(page)}`,
    );
    return rows.map(({ id }) => id);
  };
const holds = (which: SQL) => async (tx: Tx, id: AllocationId) => {
  const { rows } = await tx.execute(sql`select 1 from ${allocations} a where a.id = ${id} and ${which}`);
  return rows.length > 0;
};

/** Returns the ids of active allocations whose task that brings changed keys to the host has ended. */
export const findSettledKeys = find(isSettled);
export const isSettledKeys = holds(isSettled);
/** Returns the ids of active allocations whose changed SSH keys can be sent to the agent now, and are not in a task yet. */
export const findDueKeys = find(isDue);
export const isDueKeys = holds(isDue);

/** The facts about an allocation that decide whether its account has the SSH keys that it should have. */
export interface KeyFacts {
  readonly id: AllocationId;
  readonly siteId: SiteId | null;
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly groupIds: readonly SshKeyGroupId[];
  readonly status: AllocationRow["status"];
  readonly errorMessage: string | null;
  readonly isDue: boolean;
  readonly node: string | null;
  /** The task that brings the allocation's changed keys to the host; null if there is none. */
  readonly task: Pick<Task, "type" | "state" | "result" | "errorCode" | "errorMessage"> | null;
  readonly isTaskGone: boolean;
}

interface Raw {
  [column: string]: unknown;
  readonly id: AllocationId;
  readonly site_id: SiteId | null;
  readonly node_id: NodeId;
  readonly hostname: string;
  readonly ssh_key_group_ids: SshKeyGroupId[];
  readonly status: AllocationRow["status"];
  readonly error_message: string | null;
  readonly keys_due: boolean;
  readonly keys_task_id: string | null;
  readonly node: string | null;
  readonly task_id: string | null;
  readonly type: string;
  readonly state: Task["state"];
  readonly result: Task["result"];
  readonly error_code: string | null;
  readonly task_message: string | null;
}

/**
 * Reads the facts about the SSH keys of allocations that name stored keys or key groups: of the given allocations, or of all allocations that have
 * not ended and name one of the given groups.
 */
export async function readKeyFacts(
  db: Db | Tx,
  of: { readonly groups: readonly SshKeyGroupId[] } | { readonly ids: readonly AllocationId[] },
): Promise<KeyFacts[]> {
  const which =
    "ids" in of
      ? sql`a.id = any(${sql.param([...of.ids])}::uuid[])`
      : sql`a.status <> 'ended' and a.ssh_key_group_ids && ${sql.param([...of.groups])}::uuid[]`;
  const { rows } = await db.execute<Raw>(sql`
    select a.id, a.site_id, a.node_id, a.hostname, a.ssh_key_group_ids, a.status, a.error_message, a.keys_due, a.keys_task_id,
      n.status as node, t.id as task_id, t.type, t.state, t.result, t.error_code, t.error_message as task_message
    from ${allocations} a left join ${nodes} n on n.id = a.node_id left join ${tasks} t on t.id = a.keys_task_id
    where ${which} and ${isNaming} order by a.id`);
  return rows.map((row) => ({
    id: row.id,
    siteId: row.site_id,
    nodeId: row.node_id,
    hostname: row.hostname,
    groupIds: row.ssh_key_group_ids,
    status: row.status,
    errorMessage: row.error_message,
    isDue: row.keys_due,
    node: row.node,
    isTaskGone: row.keys_task_id !== null && row.task_id === null,
    task:
      row.task_id === null
        ? null
        : {
            type: row.type as Task["type"],
            state: row.state,
            result: row.result,
            errorCode: row.error_code,
            errorMessage: row.task_message,
          },
  }));
}
