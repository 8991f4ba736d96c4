import type { ConditionType } from "../../../shared/condition-types.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { and, asc, eq, getTableColumns, inArray, type SQL, sql } from "../orm.ts";
import { type NodeConditionRow, nodeConditions } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** A condition as it is now: of one whose life is over nothing is known, whatever was said. */
export interface ConditionNow extends NodeConditionRow {
  readonly stale: boolean;
}

/** By the database's clock, as its end was written. */
const isStale = sql<boolean>`coalesce(${nodeConditions.expiresAt} <= now(), false)`;

async function conditionsNow(db: Db, which: SQL | undefined): Promise<ConditionNow[]> {
  const rows = await db
    .select({ ...getTableColumns(nodeConditions), stale: isStale })
    .from(nodeConditions)
    .where(which)
    .orderBy(asc(nodeConditions.type));
  return rows.map(asOfNow);
}

function asOfNow(row: ConditionNow): ConditionNow {
  if (!row.stale || row.expiresAt === null) return row;
  const message = `Nothing was heard of it since ${row.observedAt.toISOString()}, and that held until ${row.expiresAt.toISOString()}. It was ${row.status} (${row.reason}): ${row.message}`;
  return { ...row, status: "Unknown", reason: "Stale", message };
}

/** Of all these nodes, in one statement. */
export const readConditionsOf = async (db: Db, nodeIds: readonly NodeId[]): Promise<ConditionNow[]> =>
  nodeIds.length === 0 ? [] : conditionsNow(db, inArray(nodeConditions.nodeId, [...nodeIds]));

/** What was last said of the node in this provisioning, whoever said it. */
export const readConditions = (db: Db, nodeId: NodeId, generation: number): Promise<ConditionNow[]> =>
  conditionsNow(db, and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.generation, generation)));

/** True when the condition was said to be True for this generation and is not stale. */
export async function conditionHolds(
  db: Db,
  nodeId: NodeId,
  type: ConditionType,
  generation: number,
): Promise<boolean> {
  const told = await readConditions(db, nodeId, generation);
  return told.some((one) => one.type === type && one.status === "True");
}
