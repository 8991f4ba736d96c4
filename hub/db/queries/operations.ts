import { z } from "zod";
import type { OperationKind, OperationSort, OperationSummary } from "../../../shared/api/operations.ts";
import type { BatchId, NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { StatusFilter } from "../../../shared/workflow-status.ts";
import { and, count, eq, inArray, or, type SQL, sql } from "../orm.ts";
import { nodeDecommissions, nodeOnboardings, type Workflow, workflows } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { EVERYWHERE, isWithin, type Reach } from "./reach.ts";
import { hasStatus, isoOrNull, toProgress } from "./workflow-views.ts";

export interface OperationFilter {
  /** The sites and the tenant to which the caller is limited; without `reach`, the list has the operations of all sites. */
  readonly reach?: Reach | undefined;
  readonly kinds?: readonly OperationKind[] | undefined;
  readonly statuses?: readonly StatusFilter[] | undefined;
  readonly siteId?: SiteId | undefined;
  readonly nodeId?: NodeId | undefined;
  readonly batchId?: BatchId | undefined;
  readonly hostname?: string | undefined;
  readonly hostnamePrefix?: string | undefined;
  readonly failureClasses?: readonly string[] | undefined;
  readonly requestedBy?: string | undefined;
  readonly slow?: boolean | undefined;
}

/** A stage counts as slow after this share of the time between its entry and its deadline. */
const SLOW_AFTER = 0.8;

/** SQL that is true for an operation whose stage has used most of the time until its deadline. */
const isSlow = sql`coalesce(${workflows.status} in ('running', 'compensating')
  and now() > ${workflows.stageEnteredAt} + ${SLOW_AFTER}::float8 * (${workflows.stageDeadline} - ${workflows.stageEnteredAt}), false)`;

const given = <T>(value: T | undefined, toSql: (value: T) => SQL | undefined): SQL | undefined =>
  value === undefined ? undefined : toSql(value);

/**
 * SQL that is true for an operation if the condition is true for the row of the operation's request in `node_onboardings` or in `node_decommissions`.
 */
const ofRequest = (
  condition: (columns: typeof nodeOnboardings | typeof nodeDecommissions) => SQL,
): SQL => sql`${workflows.id} in (
  select ${nodeOnboardings.onboardingId} from ${nodeOnboardings} where ${condition(nodeOnboardings)}
  union all select ${nodeDecommissions.decommissionId} from ${nodeDecommissions} where ${condition(nodeDecommissions)})`;

const isOfKind = (kinds: readonly OperationKind[]): SQL | undefined => {
  const modes = kinds.filter((kind) => kind !== "onboarding");
  return or(
    kinds.includes("onboarding") ? sql`${nodeOnboardings.onboardingId} is not null` : undefined,
    modes.length === 0 ? undefined : inArray(nodeDecommissions.mode, modes),
  );
};

const matches = (filter: OperationFilter): SQL | undefined =>
  and(
    sql`coalesce(${nodeOnboardings.onboardingId}, ${nodeDecommissions.decommissionId}) is not null`,
    isWithin(filter.reach ?? EVERYWHERE, { site: workflows.siteId }),
    given(filter.kinds, isOfKind),
    given(filter.statuses, (statuses) => hasStatus(...statuses)),
    given(filter.siteId, (id) => eq(workflows.siteId, id)),
    given(filter.nodeId, (id) => ofRequest(({ nodeId }) => sql`${nodeId} = ${id}`)),
    given(filter.batchId, (id) => eq(workflows.batchId, id)),
    given(filter.hostname, (name) => ofRequest(({ hostname }) => sql`${hostname} = ${name}`)),
    given(filter.hostnamePrefix, (prefix) => ofRequest(({ hostname }) => sql`starts_with(${hostname}, ${prefix})`)),
    given(filter.failureClasses, (classes) => inArray(workflows.failureClass, [...classes])),
    given(filter.requestedBy, (name) => eq(workflows.requestedBy, name)),
    given(filter.slow, (slow) => (slow ? isSlow : sql`not ${isSlow}`)),
  );

const deadline = sql`coalesce(${workflows.stageDeadline}, 'infinity')`;
const keyOf = (sort: OperationSort): SQL => (sort.endsWith("requested_at") ? sql`${workflows.requestedAt}` : deadline);

const TIME = /^(infinity|\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00)$/;
/** The schema of a cursor for a sort order of operations: the order's name, and the time and id of the last row. */
export const operationCursor = (sort: OperationSort): z.ZodType<readonly string[]> =>
  z.tuple([z.literal(sort), z.string().regex(TIME), z.uuid()]);

const columns = {
  workflow: workflows,
  onboarding: {
    nodeId: nodeOnboardings.nodeId,
    hostname: nodeOnboardings.hostname,
    maasSystemId: nodeOnboardings.maasSystemId,
  },
  decommission: {
    nodeId: nodeDecommissions.nodeId,
    hostname: nodeDecommissions.hostname,
    maasSystemId: nodeDecommissions.maasSystemId,
    mode: nodeDecommissions.mode,
  },
};
interface Request {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly maasSystemId: string | null;
}
interface Row {
  readonly workflow: Workflow;
  readonly onboarding: Request | null;
  readonly decommission: (Request & { readonly mode: Exclude<OperationKind, "onboarding"> }) | null;
}

function toSummary({ workflow, onboarding, decommission }: Row): OperationSummary {
  const request = onboarding ?? decommission;
  if (request === null) throw new Error(`workflow ${workflow.id} is no operation on a host`);
  const { error_details: _large, ...progress } = toProgress(workflow);
  return {
    operation_id: workflow.id,
    kind: decommission?.mode ?? "onboarding",
    batch_id: workflow.batchId,
    node_id: request.nodeId,
    site_id: workflow.siteId,
    hostname: request.hostname,
    maas_system_id: request.maasSystemId,
    ...progress,
    stage_entered_at: isoOrNull(workflow.stageEnteredAt),
  };
}

export interface OperationPage {
  readonly limit: number;
  /** The cursor after which the page of the list of operations begins; null for the first page. */
  readonly after: readonly string[] | null;
  readonly sort: OperationSort;
}

/** Lists operations of all kinds in one SQL statement, with the cursor that follows each of them. */
export async function listOperations(
  db: Db,
  filter: OperationFilter,
  { limit, after, sort }: OperationPage,
): Promise<{ operation: OperationSummary; cursor: readonly string[] }[]> {
  const key = keyOf(sort);
  const down = sort.startsWith("-");
  const [, time = "", id = ""] = after ?? [];
  const row = sql`(${key}, ${workflows.id})`;
  const last = sql`(${time}::timestamptz, ${id}::uuid)`;
  const rows = await db
    .select({ ...columns, cursor: sql<string[]>`array[${sort}, ${key}::text, ${workflows.id}::text]` })
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflows.id))
    .where(and(matches(filter), after === null ? undefined : down ? sql`${row} < ${last}` : sql`${row} > ${last}`))
    .orderBy(...(down ? [sql`${key} desc`, sql`${workflows.id} desc`] : [sql`${key}`, sql`${workflows.id}`]))
    .limit(limit);
  return rows.map(({ cursor, ...one }) => ({ operation: toSummary(one), cursor }));
}

/** Returns the operation with the row of its workflow; null if no operation has the id. */
export async function readOperationRow(
  db: Db,
  id: WorkflowId,
): Promise<{ readonly operation: OperationSummary; readonly workflow: Workflow } | null> {
  const [row] = await db
    .select(columns)
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflows.id))
    .where(and(eq(workflows.id, id), matches({})));
  return row === undefined ? null : { operation: toSummary(row), workflow: row.workflow };
}

export async function countOperations(db: Db, filter: OperationFilter): Promise<number> {
  const [row] = await db
    .select({ operations: count() })
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflows.id))
    .where(matches(filter));
  return row?.operations ?? 0;
}
