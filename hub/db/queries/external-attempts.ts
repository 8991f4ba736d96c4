import {
  EXTERNAL_STATES,
  type ExternalState,
  type ExternalStatus,
  STATUS_OF_STATE,
} from "../../../shared/external-attempt.ts";
import type { ExternalAttemptId, NodeId, SiteId } from "../../../shared/ids.ts";
import { KEPT_OF_A_NODE } from "../kept.ts";
import { and, desc, eq, gt, inArray, ne, type SQL, sql } from "../orm.ts";
import { type ExternalAttemptRow, externalAttempts, type Node, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";

/** An attempt of an external system to provision a node, with the facts about the node that the API shows. */
export interface ExternalAttemptView {
  readonly attempt: ExternalAttemptRow;
  readonly node: Pick<Node, "hostname" | "networkOwnedBy" | "runsAgent">;
  readonly isSuperseded: boolean;
}

const isSuperseded = sql<boolean>`exists (
  select from external_attempts newer where newer.node_id = ${externalAttempts.nodeId} and newer.number > ${externalAttempts.number})`;
const VIEW = {
  attempt: externalAttempts,
  node: { hostname: nodes.hostname, networkOwnedBy: nodes.networkOwnedBy, runsAgent: nodes.runsAgent },
  isSuperseded,
};

export type NewExternalAttempt = Pick<
  typeof externalAttempts.$inferInsert,
  | "nodeId"
  | "siteId"
  | "generation"
  | "profileId"
  | "provisioner"
  | "holder"
  | "reason"
  | "leaseSeconds"
  | "readyWithinSeconds"
  | "adopted"
> & { readonly deadlineSeconds: number };

/** The caller of `insertAttempt` has locked the node, so that two attempts to provision one node cannot get the same number. */
export async function insertAttempt(
  tx: Tx,
  { deadlineSeconds, ...values }: NewExternalAttempt,
): Promise<ExternalAttemptRow> {
  const [row] = await tx
    .insert(externalAttempts)
    .values({
      ...values,
      number: sql`coalesce((select max(e.number) from external_attempts e where e.node_id = ${values.nodeId}), 0) + 1`,
      state: "begun",
      leaseExpiresAt: sql`now() + make_interval(secs => ${values.leaseSeconds})`,
      deadlineAt: sql`now() + make_interval(secs => ${deadlineSeconds})`,
    })
    .returning();
  if (row === undefined) throw new Error("an insert returned no row");
  await tx
    .delete(externalAttempts)
    .where(
      and(
        eq(externalAttempts.nodeId, values.nodeId),
        sql`${externalAttempts.number} <= ${row.number - KEPT_OF_A_NODE.externalAttempts}`,
      ),
    );
  return row;
}

export async function readAttempt(db: Db | Tx, id: ExternalAttemptId): Promise<ExternalAttemptView | null> {
  const [row] = await db
    .select(VIEW)
    .from(externalAttempts)
    .innerJoin(nodes, eq(nodes.id, externalAttempts.nodeId))
    .where(eq(externalAttempts.id, id));
  return row ?? null;
}

/** Returns the newest attempt of an external system to provision each of the nodes. */
export async function newestAttempts(
  tx: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, ExternalAttemptRow>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await tx
    .selectDistinctOn([externalAttempts.nodeId])
    .from(externalAttempts)
    .where(inArray(externalAttempts.nodeId, [...nodeIds]))
    .orderBy(externalAttempts.nodeId, desc(externalAttempts.number));
  return new Map(rows.map((row) => [row.nodeId, row]));
}

export interface AttemptMove {
  readonly from: ExternalState;
  readonly to: ExternalState;
  readonly reason: string;
  readonly failureCode?: string | null;
  readonly facts?: ExternalAttemptRow["facts"];
  readonly step?: string | undefined;
  readonly percent?: number | undefined;
  /** True if the external system reported the change of its provisioning attempt; each report renews the attempt's lease. */
  readonly isReport: boolean;
}

/**
 * Changes an attempt's state. When the external system has provisioned the host (state `verifying`), the host gets its own time to become ready, even
 * if the attempt's deadline is earlier.
 */
export async function moveAttempt(
  tx: Tx,
  id: ExternalAttemptId,
  { from, to, isReport, step, percent, facts, failureCode = null, reason }: AttemptMove,
): Promise<ExternalAttemptRow | null> {
  const { leaseSeconds, readyWithinSeconds, deadlineAt } = externalAttempts;
  const provisionedAt =
    facts?.provisioned_at === undefined
      ? sql`now()`
      : sql`least(now(), ${new Date(facts.provisioned_at).toISOString()}::timestamptz)`;
  const [row] = await tx
    .update(externalAttempts)
    .set({
      state: to,
      reason,
      failureCode,
      ...(from === to ? {} : { changedAt: sql`now()` }),
      ...(isReport ? { heardAt: sql`now()`, leaseExpiresAt: sql`now() + make_interval(secs => ${leaseSeconds})` } : {}),
      ...(step === undefined ? {} : { step, percent: percent ?? null }),
      ...(facts === undefined ? {} : { facts, provisionedAt }),
      ...(to === "verifying"
        ? { deadlineAt: sql`greatest(${deadlineAt}, now() + make_interval(secs => ${readyWithinSeconds}))` }
        : {}),
    })
    .where(and(eq(externalAttempts.id, id), eq(externalAttempts.state, from)))
    .returning();
  return row ?? null;
}

export async function keepLateReport(tx: Tx, id: ExternalAttemptId, told: string): Promise<void> {
  await tx
    .update(externalAttempts)
    .set({ lateReports: sql`${externalAttempts.lateReports} + 1`, lastLateReport: told })
    .where(eq(externalAttempts.id, id));
}

/** Why an external system's attempt is due for a check: its lease or its deadline has passed, or the node may have become ready. */
export interface DueAttempt {
  readonly attempt: ExternalAttemptRow;
  readonly isLeaseOver: boolean;
  readonly isDeadlineOver: boolean;
}

/**
 * SQL for the nodes whose newest external provisioning attempt needs a check: its lease or its deadline has passed, or the node may have become
 * ready.
 */
const isDue = sql`${nodes.id} in (
        select e.node_id from external_attempts e where e.state in ('begun', 'in_progress', 'verifying', 'unverified', 'lost')
          and not exists (select from external_attempts newer where newer.node_id = e.node_id and newer.number > e.number)
          and (e.state in ('verifying', 'unverified') or e.deadline_at <= now()
            or (e.state in ('begun', 'in_progress') and e.lease_expires_at <= now())))`;

/** Returns the nodes whose external provisioning attempts need a check now and whose ids are higher than `after`, sorted by id. */
export async function findDueNodes(db: Db, atOnce: number, after: NodeId | null): Promise<NodeId[]> {
  const rows = await db
    .select({ id: nodes.id })
    .from(nodes)
    .where(and(isDue, after === null ? undefined : gt(nodes.id, after)))
    .orderBy(nodes.id)
    .limit(atOnce);
  return rows.map(({ id }) => id);
}

/** Locks the node and returns its external attempt; null if the attempt is no longer due, or if another transaction has locked the node. */
export async function lockDueAttempt(tx: Tx, nodeId: NodeId): Promise<DueAttempt | null> {
  const [locked] = await tx
    .select({ id: nodes.id })
    .from(nodes)
    .where(and(eq(nodes.id, nodeId), isDue))
    .for("no key update", { skipLocked: true });
  const attempt = locked === undefined ? undefined : (await newestAttempts(tx, [nodeId])).get(nodeId);
  if (attempt === undefined) return null;
  const [row] = await tx
    .select({
      attempt: externalAttempts,
      isLeaseOver: sql<boolean>`${externalAttempts.leaseExpiresAt} <= now()`,
      isDeadlineOver: sql<boolean>`${externalAttempts.deadlineAt} <= now()`,
    })
    .from(externalAttempts)
    .where(eq(externalAttempts.id, attempt.id));
  return row ?? null;
}

export interface AttemptFilter {
  readonly nodeId: NodeId | undefined;
  readonly hostname: string | undefined;
  readonly status: ExternalStatus | undefined;
  readonly provisioner: string | undefined;
  readonly reach: Reach;
}

const statesOf = (status: ExternalStatus): ExternalState[] =>
  EXTERNAL_STATES.filter((state) => STATUS_OF_STATE[state] === status);

export async function listAttempts(
  db: Db,
  { nodeId, hostname, status, provisioner, reach }: AttemptFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<(ExternalAttemptView & { readonly at: string })[]> {
  const { begunAt, id, siteId } = externalAttempts;
  const conditions: (SQL | undefined)[] = [
    nodeId === undefined ? undefined : eq(externalAttempts.nodeId, nodeId),
    hostname === undefined ? undefined : eq(nodes.hostname, hostname),
    status === undefined ? undefined : inArray(externalAttempts.state, statesOf(status)),
    provisioner === undefined ? undefined : eq(externalAttempts.provisioner, provisioner),
    isWithin(reach, { site: siteId }),
    page.before === null
      ? undefined
      : sql`(${begunAt}, ${id}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  return db
    .select({ ...VIEW, at: sql<string>`${begunAt}::text` })
    .from(externalAttempts)
    .innerJoin(nodes, eq(nodes.id, externalAttempts.nodeId))
    .where(and(...conditions))
    .orderBy(desc(begunAt), desc(id))
    .limit(page.limit);
}

/** Locks and returns the living nodes whose hostnames an external system named, or whose newest attempt that system began. */
export async function nodesOfProvisioner(
  tx: Tx,
  siteId: SiteId | null,
  provisioner: string,
  hostnames: readonly string[],
): Promise<Pick<Node, "id" | "hostname" | "status" | "onboardingMode">[]> {
  return tx
    .select({ id: nodes.id, hostname: nodes.hostname, status: nodes.status, onboardingMode: nodes.onboardingMode })
    .from(nodes)
    .where(
      and(
        ne(nodes.status, "deleted"),
        sql`${nodes.siteId} is not distinct from ${siteId}::uuid`,
        sql`(${nodes.hostname} = any(${sql.param([...hostnames])}::text[]) or ${nodes.onboardingMode} = 'external' and ${provisioner} = (
          select e.provisioner from external_attempts e where e.node_id = ${nodes.id} order by e.number desc limit 1))`,
      ),
    )
    .orderBy(nodes.id)
    .for("no key update");
}
