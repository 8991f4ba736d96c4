import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { StageEvent, workflowProgress } from "../../../shared/api/workflow-progress.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { WorkflowStatus } from "../../../shared/workflow-status.ts";
import { asc, eq, type SQL, sql } from "../../db/orm.ts";
import { isoOrNull, toProgress, toStageEvent } from "../../db/queries/workflow-views.ts";
import {
  nodeDecommissions,
  nodeOnboardings,
  type WorkflowEvent,
  workflowEvents,
  workflows as workflowRows,
} from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection, type LeftOut } from "../section.ts";

const MOST_COUNTS = 300;
const MOST_FAILED = 50;
const MOST_AT_WORK = 50;
const MOST_PENDING = 20;
const EVENTS_SHOWN = 10;
/**
 * The longest evidence of a workflow that the diagnostics show, in characters of JSON. The evidence of a workflow may contain a long answer of a MAAS
 * region.
 */
const LONGEST_EVIDENCE = 4_000;
const LONGEST_DETAILS = 1_000;

const Count = z.strictObject({
  kind: z.string(),
  status: WorkflowStatus,
  stage: z.string(),
  failure_class: z.string().nullable(),
  error_code: z.string().nullable(),
  workflows: z.int(),
  oldest_updated_at: Timestamp,
});
const Workflow = z.strictObject({
  id: z.uuid(),
  kind: z.string(),
  site_id: z.uuid().nullable(),
  batch_id: z.uuid().nullable(),
  node_id: z.uuid().nullable(),
  hostname: z.string().nullable(),
  maas_system_id: z.string().nullable(),
  ...workflowProgress,
  // A workflow's row that another version of the hub wrote may have a failure class that this version of the hub does not know.
  failure_class: z.string().nullable(),
  stage_runs: z.int(),
  stage_entered_at: Timestamp.nullable(),
  waits_on: z.string().nullable(),
  wake_at: Timestamp.nullable(),
  hub_id: z.uuid().nullable(),
  lease_until: Timestamp.nullable(),
  fence: z.int(),
  events: z.array(z.strictObject({ ...StageEvent.shape, hub_id: z.uuid().nullable(), fence: z.int() })),
  events_left_out: z.int(),
});

async function readCounts(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Count> & { of: number }>(sql`
    select kind, status, stage, failure_class, failure_code as error_code, count(*)::int as workflows,
      ${iso("min(updated_at)")} as oldest_updated_at, ${OF}
    from workflows group by 1, 2, 3, 4, 5
    order by status in ('completed', 'cancelled', 'reconciled'), 6 desc, 1, 2, 3, 4, 5 limit ${MOST_COUNTS}`);
  return bounded("counts", rows);
}

/**
 * The workflows that the diagnostics list: those that failed last, those that have been at their stage longest, and those that have waited longest
 * for admission.
 */
const CHOSEN: readonly { readonly list: string; readonly statuses: SQL; readonly order: SQL; readonly most: number }[] =
  [
    {
      list: "failed",
      statuses: sql`('failed_retryable', 'failed_manual_intervention')`,
      order: sql`updated_at desc`,
      most: MOST_FAILED,
    },
    {
      list: "at_work",
      statuses: sql`('running', 'compensating')`,
      order: sql`stage_entered_at nulls last`,
      most: MOST_AT_WORK,
    },
    { list: "pending", statuses: sql`('pending')`, order: sql`requested_at`, most: MOST_PENDING },
  ];

async function readRows(tx: Tx) {
  const chosen = CHOSEN.map(
    ({ statuses, order, most }) =>
      sql`(select id from workflows where status in ${statuses} order by ${order}, id limit ${most})`,
  );
  return tx
    .select({
      workflow: workflowRows,
      onboarding: nodeOnboardings,
      decommission: nodeDecommissions,
      events: sql<number>`(select count(*) from workflow_events e where e.workflow_id = ${workflowRows.id})::int`,
    })
    .from(workflowRows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflowRows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflowRows.id))
    .where(sql`${workflowRows.id} = any(array(${sql.join(chosen, sql` union all `)}))`)
    .orderBy(asc(workflowRows.status), asc(workflowRows.updatedAt), asc(workflowRows.id));
}
type Row = Awaited<ReturnType<typeof readRows>>[number];

/** Reads the last events of each of the given workflows, oldest first. */
const readEvents = (tx: Tx, ids: readonly WorkflowId[]): Promise<WorkflowEvent[]> =>
  tx
    .select()
    .from(workflowEvents)
    .where(
      sql`${workflowEvents.id} = any(array(
        select e.id from unnest(${sql.param([...ids])}::uuid[]) w(id) cross join lateral
          (select id from workflow_events where workflow_id = w.id order by id desc limit ${EVENTS_SHOWN}) e))`,
    )
    .orderBy(asc(workflowEvents.id));

const within = (value: Json, most: number): Json => {
  const { length } = JSON.stringify(value);
  return length <= most ? value : { left_out_characters: length };
};

function toWorkflow(row: Row, events: readonly WorkflowEvent[]): z.input<typeof Workflow> {
  const { workflow, onboarding, decommission } = row;
  const about = onboarding ?? decommission;
  const progress = toProgress(workflow);
  return {
    id: workflow.id,
    kind: workflow.kind,
    site_id: workflow.siteId,
    batch_id: workflow.batchId,
    node_id: about?.nodeId ?? null,
    hostname: about?.hostname ?? null,
    maas_system_id: about?.maasSystemId ?? null,
    ...progress,
    error_details: within(progress.error_details, LONGEST_EVIDENCE),
    stage_runs: workflow.stageRuns,
    stage_entered_at: isoOrNull(workflow.stageEnteredAt),
    waits_on: workflow.waitOn,
    wake_at: isoOrNull(workflow.wakeAt),
    hub_id: workflow.leaseOwner,
    lease_until: isoOrNull(workflow.leaseUntil),
    fence: workflow.fence,
    events: events.map((event) => {
      const { details, ...told } = toStageEvent(event);
      return { ...told, details: within(details, LONGEST_DETAILS), hub_id: event.hubId, fence: event.fence };
    }),
    events_left_out: row.events - events.length,
  };
}

async function readLeftOut(tx: Tx): Promise<LeftOut[]> {
  const counts = CHOSEN.map(
    ({ list, statuses }) =>
      sql`select ${list}::text as list, count(*)::int as n from workflows where status in ${statuses}`,
  );
  const { rows } = await tx.execute<{ list: string; n: number }>(sql.join(counts, sql` union all `));
  return CHOSEN.flatMap(({ list, most }) => {
    const of = rows.find((row) => row.list === list)?.n ?? 0;
    return of > most ? [{ list: `workflows.${list}`, shown: most, of }] : [];
  });
}

export const workflows = databaseSection({
  name: "workflows",
  about:
    "Workflows counted by kind, status, stage and failure; of the unfinished ones the latest failed, the longest at their stage and the longest waiting, each with its last events",
  data: z.strictObject({ counts: z.array(Count), workflows: z.array(Workflow) }),
  read: async (tx) => {
    const counts = await readCounts(tx);
    const leftOut = await readLeftOut(tx);
    const rows = await readRows(tx);
    const events = await readEvents(
      tx,
      rows.map(({ workflow }) => workflow.id),
    );
    const byWorkflow = Map.groupBy(events, ({ workflowId }) => workflowId);
    return {
      data: {
        counts: counts.shown,
        workflows: rows.map((row) => toWorkflow(row, byWorkflow.get(row.workflow.id) ?? [])),
      },
      leftOut: [...counts.leftOut, ...leftOut],
    };
  },
});
