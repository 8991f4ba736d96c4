import {
  CONDITION_TYPES,
  type ConditionSource,
  type ConditionType,
  ROCE_CONDITIONS,
  ruleOf,
} from "../../../shared/condition-types.ts";
import { FLAPPING } from "../../../shared/flapping.ts";
import type { NodeId } from "../../../shared/ids.ts";
import type { ConditionOf, ReportedCondition } from "../../../shared/readiness.ts";
import { KEPT_OF_A_NODE } from "../kept.ts";
import { and, asc, desc, eq, getTableColumns, inArray, ne, type SQL, type SQLWrapper, sql } from "../orm.ts";
import { type NodeConditionRow, nodeConditions } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { waitKey, wakeWorkflows } from "./workflow-wakes.ts";

export interface ConditionNow extends Omit<NodeConditionRow, "changes"> {
  readonly stale: boolean;
}
const { changes, ...SHOWN } = getTableColumns(nodeConditions);

/** The database's clock decides whether a condition is stale, because the database's clock also set `expires_at`. */
const isStale = sql<boolean>`coalesce(${nodeConditions.expiresAt} <= now(), false)`;

function asOfNow(row: ConditionNow): ConditionNow {
  if (!row.stale || row.expiresAt === null) return row;
  const message = `The last report of this condition came at ${row.observedAt.toISOString()} and expired at ${row.expiresAt.toISOString()}. It said ${row.status} (${row.reason}): ${row.message}`;
  return { ...row, status: "Unknown", reason: "Stale", message };
}

/** True for the condition types that Muster itself defines, of which a node has at most one condition each. */
const isKnownType = inArray(nodeConditions.type, Object.keys(CONDITION_TYPES));
/**
 * True for the results of the hub's own probes; the profile limits the number of probes. A condition of a type `probe.*` that does not come from the
 * hub itself is not the result of a probe.
 */
const isOfOwnProbe = sql`(${nodeConditions.type} like 'probe.%' and ${nodeConditions.source} = 'hub')`;

/**
 * Reads the conditions of Muster's own types, and of the other given types, which are those that readiness policies ask for. `readConditionFacts` leaves
 * out the messages of conditions to keep long lists small.
 */
export async function readConditionFacts(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
  types: readonly string[] = [],
): Promise<Omit<ConditionNow, "message">[]> {
  if (nodeIds.length === 0) return [];
  const rows = await db
    .select({ ...SHOWN, message: sql<string>`''`, stale: isStale })
    .from(nodeConditions)
    .where(
      and(
        inArray(nodeConditions.nodeId, [...nodeIds]),
        inArray(nodeConditions.type, [...new Set([...Object.keys(CONDITION_TYPES), ...types])]),
      ),
    );
  return rows.map(asOfNow);
}

const MOST_SHOWN = 100;

/** Reads at most a hundred conditions of one node for display, and prefers conditions of Muster's own types. */
export async function listConditions(db: Db | Tx, nodeId: NodeId): Promise<ConditionNow[]> {
  const rows = await db
    .select({ ...SHOWN, stale: isStale })
    .from(nodeConditions)
    .where(eq(nodeConditions.nodeId, nodeId))
    .orderBy(desc(isKnownType), asc(nodeConditions.type))
    .limit(MOST_SHOWN);
  return rows.map(asOfNow).sort((a, b) => (a.type < b.type ? -1 : 1));
}

export async function readConditions(db: Db | Tx, nodeId: NodeId, generation: number): Promise<ConditionNow[]> {
  const rows = await db
    .select({ ...SHOWN, stale: isStale })
    .from(nodeConditions)
    .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.generation, generation), isKnownType))
    .orderBy(asc(nodeConditions.type));
  return rows.map(asOfNow);
}

export async function readOwnTypes(db: Db | Tx, nodeId: NodeId): Promise<string[]> {
  const rows = await db
    .select({ type: nodeConditions.type })
    .from(nodeConditions)
    .where(and(eq(nodeConditions.nodeId, nodeId), sql`not ${isKnownType}`, sql`not ${isOfOwnProbe}`))
    .limit(KEPT_OF_A_NODE.ownConditions);
  return rows.map(({ type }) => type);
}

/** True if the condition was reported as True in the given generation of the node and is not stale. */
export async function conditionHolds(
  db: Db,
  nodeId: NodeId,
  type: ConditionType,
  generation: number,
): Promise<boolean> {
  const told = await readConditions(db, nodeId, generation);
  return told.some((one) => one.type === type && one.status === "True");
}

export async function removeConditions(tx: Tx, nodeId: NodeId, which: "of_others" | ConditionType): Promise<number> {
  const type =
    which === "of_others" ? and(sql`not ${isKnownType}`, sql`not ${isOfOwnProbe}`) : eq(nodeConditions.type, which);
  const removed = await tx
    .delete(nodeConditions)
    .where(and(eq(nodeConditions.nodeId, nodeId), type))
    .returning({ type: nodeConditions.type });
  return removed.length;
}

/**
 * The order of two reports about one moment: the worse status wins, whichever report arrives first. Without this rule for two reports about the same
 * moment, the verdict about a node would depend on the order in which the reports arrive.
 */
const badness = (status: SQLWrapper): SQL => sql`case ${status} when 'True' then 0 when 'Unknown' then 1 else 2 end`;

/** A condition keeps the time of its last change as long as reports repeat its status in one generation, and none of them has expired. */
const changedAt = sql`case when ${nodeConditions.generation} = excluded.generation and ${nodeConditions.status} = excluded.status
  and coalesce(${nodeConditions.expiresAt} > now(), true) then ${nodeConditions.changedAt} else now() end`;

const isOfExcluded = sql`${nodeConditions.generation} = excluded.generation`;
/** A report that arrives after the condition has expired counts as a change, even if it repeats the condition's status. */
const isChange = sql`(${nodeConditions.status} <> excluded.status or coalesce(${nodeConditions.expiresAt} <= now(), false))`;
const secondsAgo = (seconds: number): SQL => sql`now() - make_interval(secs => ${seconds})`;
const countedChanges = sql`case when ${changes}[1] > ${secondsAgo(FLAPPING.apartSeconds)} then ${changes}
  else (array[now()] || ${changes})[1:${sql.raw(String(FLAPPING.changes))}] end`;
/** SQL that is true if the condition flaps now, as `isFlapping` of shared/flapping.ts decides. */
const flapsNow = sql`(${nodeConditions.flappingSince} is not null
  and ${nodeConditions.changedAt} > ${secondsAgo(FLAPPING.holdSeconds)})`;
/** The history of a condition's changes after a report, as `afterChange` of shared/flapping.ts decides. A new generation begins a new history. */
const historyAfter = (counts: SQL) => ({
  changes: sql`case when not ${isOfExcluded} then '{}' when ${counts} then ${countedChanges} else ${changes} end`,
  flappingSince: sql`case when not ${isOfExcluded} then null
    when ${flapsNow} then ${nodeConditions.flappingSince}
    when ${counts} and (${countedChanges})[${sql.raw(String(FLAPPING.changes))}] >= ${secondsAgo(FLAPPING.windowSeconds)} then now() end`,
});
/**
 * For the flapping of a probe's condition, only a change that the host itself has made counts. When a probe's condition expires or a probe's result
 * is Unknown, this says something about the hub and not about the host, because a hub may be late for all hosts.
 */
const isChangeOfHost = sql`(${nodeConditions.status} <> excluded.status and 'Unknown' not in (${nodeConditions.status}, excluded.status)
  and coalesce(${nodeConditions.expiresAt} > now(), true))`;

/**
 * Writes conditions of the node's present generation, and wakes the workflows that wait for the node. If a condition's time lies in the future,
 * `writeConditions` stores the present time, so that a host's fast clock cannot block later reports. `arrived` is the time, by the database's clock,
 * at which the reports of the conditions arrived; without `arrived`, this is the present time.
 */
export async function writeConditions(
  tx: Tx,
  node: { id: NodeId; generation: number },
  source: ConditionSource,
  conditions: readonly ReportedCondition[],
  arrived: Date | null = null,
): Promise<void> {
  const receivedAt = arrived === null ? sql`now()` : sql`${arrived.toISOString()}::timestamptz`;
  await tx
    .insert(nodeConditions)
    .values(
      [...new Map(conditions.map((condition) => [condition.type, condition])).values()].map((condition) => ({
        nodeId: node.id,
        type: condition.type,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        generation: node.generation,
        source,
        observedAt: sql`least(${observedAt(condition)}::timestamptz, ${receivedAt})`,
        receivedAt,
        expiresAt: expiryOf(condition.type, receivedAt),
      })),
    )
    .onConflictDoUpdate({
      target: [nodeConditions.nodeId, nodeConditions.type],
      set: {
        status: sql`excluded.status`,
        reason: sql`excluded.reason`,
        message: sql`excluded.message`,
        generation: sql`excluded.generation`,
        source: sql`excluded.source`,
        observedAt: sql`excluded.observed_at`,
        expiresAt: sql`excluded.expires_at`,
        receivedAt: sql`excluded.received_at`,
        changedAt,
        ...historyAfter(isChange),
      },
      setWhere: sql`(${nodeConditions.generation}, ${nodeConditions.observedAt}, ${badness(nodeConditions.status)})
          <= (excluded.generation, excluded.observed_at, ${badness(sql`excluded.status`)})
        or (${nodeConditions.generation} = excluded.generation and ${nodeConditions.expiresAt} <= now())`,
    });
  await wakeWorkflows(tx, [waitKey.node(node.id)]);
}

/** A time before 1970, or a time that JavaScript cannot parse, becomes 1970, because ISO 8601 allows years that PostgreSQL does not accept. */
const observedAt = (condition: ReportedCondition): string =>
  new Date(Math.max(0, Date.parse(condition.observed_at) || 0)).toISOString();

/** The time, by the database's clock, at which a condition becomes stale whose report arrived at the given time. */
function expiryOf(type: string, arrived: SQL = sql`now()`) {
  const life = ruleOf(type)?.lifeSeconds ?? null;
  return life === null ? null : sql`${arrived} + make_interval(secs => ${life})`;
}

/** A condition that the hub itself observed gets the database's time and replaces any earlier value. */
export const writeOwnCondition = (
  tx: Tx,
  node: { id: NodeId; generation: number },
  said: Pick<ConditionOf<"hub">, "type" | "status" | "reason" | "message">,
): Promise<void> => replaceCondition(tx, node, said, { expiresAt: expiryOf(said.type) });

/** Stores the result of a probe as a condition of the node, which expires after `lifeSeconds`. */
export const writeProbeCondition = (
  tx: Tx,
  node: { id: NodeId; generation: number },
  said: Pick<ReportedCondition, "status" | "reason" | "message"> & { readonly type: `probe.${string}` },
  lifeSeconds: number,
): Promise<void> =>
  replaceCondition(
    tx,
    node,
    said,
    { expiresAt: sql`now() + make_interval(secs => ${lifeSeconds})` },
    historyAfter(isChangeOfHost),
  );

async function replaceCondition(
  tx: Tx,
  node: { id: NodeId; generation: number },
  said: Pick<ReportedCondition, "type" | "status" | "reason" | "message">,
  expiry: { readonly expiresAt: SQL | null },
  history: Partial<ReturnType<typeof historyAfter>> = {},
): Promise<void> {
  const values = { ...said, generation: node.generation, source: "hub", observedAt: sql`now()` } as const;
  await tx
    .insert(nodeConditions)
    .values({ ...values, ...expiry, nodeId: node.id })
    .onConflictDoUpdate({
      target: [nodeConditions.nodeId, nodeConditions.type],
      set: { ...values, ...expiry, ...history, receivedAt: sql`now()`, changedAt },
    });
  await wakeWorkflows(tx, [waitKey.node(node.id)]);
}

/**
 * Stores one and the same condition, set by the hub, for many new nodes, with one statement. The status of each new condition is Unknown until a
 * report sets it.
 */
export async function writeOwnConditions(
  tx: Tx,
  nodeIds: readonly NodeId[],
  said: Pick<ConditionOf<"hub">, "type" | "reason" | "message">,
): Promise<void> {
  const values = { ...said, status: "Unknown", generation: 0, source: "hub", observedAt: sql`now()` } as const;
  await tx.insert(nodeConditions).values(nodeIds.map((nodeId) => ({ ...values, nodeId })));
}

/**
 * Sets the reasons of the nodes' RoCE conditions after a change of the profile's `roce_required`, because the reason decides whether the condition
 * keeps new work off the node.
 */
export async function setRoceRequired(tx: Tx, nodeIds: readonly NodeId[], required: boolean): Promise<void> {
  if (nodeIds.length === 0) return;
  const bars = sql`case ${nodeConditions.status} when 'Unknown' then 'Unreadable' else 'AddressesMissing' end`;
  const allowed = CONDITION_TYPES["network.roce"].tolerates;
  await tx
    .update(nodeConditions)
    .set({ reason: required ? bars : allowed })
    .where(
      and(
        inArray(nodeConditions.nodeId, [...nodeIds]),
        inArray(nodeConditions.type, [...ROCE_CONDITIONS]),
        ne(nodeConditions.status, "True"),
      ),
    );
  await wakeWorkflows(
    tx,
    nodeIds.map((nodeId) => waitKey.node(nodeId)),
  );
}

type OfProbes = readonly { readonly nodeId: NodeId; readonly type: `probe.${string}` }[];

const areOfProbes = (which: OfProbes): SQL => sql`(node_id, type) in (
  select * from unnest(${sql.param(which.map(({ nodeId }) => nodeId))}::uuid[], ${sql.param(which.map(({ type }) => type))}::text[]))
  and source = 'hub'`;

/** Returns those of the given probes whose last result has not expired, so that the next result continues their counts. */
export async function probesThatCount(tx: Tx, which: OfProbes): Promise<{ nodeId: NodeId; type: string }[]> {
  return tx
    .select({ nodeId: nodeConditions.nodeId, type: nodeConditions.type })
    .from(nodeConditions)
    .where(and(areOfProbes(which), sql`${nodeConditions.expiresAt} > now()`));
}

/** Removes the conditions of probes that the profiles list no longer. */
export async function removeProbeConditions(tx: Tx, which: OfProbes): Promise<void> {
  if (which.length === 0) return;
  await tx.delete(nodeConditions).where(areOfProbes(which));
  await wakeWorkflows(tx, [...new Set(which.map(({ nodeId }) => waitKey.node(nodeId)))]);
}

/**
 * Sets the conditions of the given probes to Unknown, because the probes' last results no longer say anything about the host. A probe that has had no
 * result has no condition, and gets none.
 */
export async function voidProbeConditions(
  tx: Tx,
  which: OfProbes,
  said: { readonly reason: string; readonly message: string },
): Promise<void> {
  if (which.length === 0) return;
  const voided = await tx
    .update(nodeConditions)
    .set({
      ...said,
      status: "Unknown",
      changes: [],
      flappingSince: null,
      expiresAt: null,
      receivedAt: sql`now()`,
      changedAt: sql`case when ${nodeConditions.status} = 'Unknown' then ${nodeConditions.changedAt} else now() end`,
    })
    .where(areOfProbes(which))
    .returning({ nodeId: nodeConditions.nodeId });
  await wakeWorkflows(tx, [...new Set(voided.map(({ nodeId }) => waitKey.node(nodeId)))]);
}

/** Extends up to `most` conditions that would expire before the time `grace_until` of the row in `condition_watch`. */
export async function extendExpiries(tx: Tx, seconds: number, most: number): Promise<number> {
  const { rowCount } = await tx.execute(sql`
    with step as (
      select c.node_id, c.type from node_conditions c, condition_watch w
      where c.expires_at > w.looked_until and c.expires_at < w.grace_until
      order by c.expires_at limit ${most} for update of c)
    update node_conditions c set expires_at = greatest(now() + make_interval(secs => ${seconds}), w.grace_until)
    from step, condition_watch w where c.node_id = step.node_id and c.type = step.type`);
  return rowCount ?? 0;
}
