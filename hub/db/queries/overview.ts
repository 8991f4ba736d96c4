import type { Overview } from "../../../shared/api/overview.ts";
import { NOT_UNDONE } from "../../../shared/failures.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { and, count, desc, eq, ne, type SQL, sql } from "../orm.ts";
import {
  nodeCertificates,
  nodeDecommissions,
  nodeMaasState,
  nodeOnboardings,
  nodes,
  type ReconcilerBreaker,
  reconcilerBreakers,
  workflows,
} from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db } from "../tx.ts";
import { countOperations, listOperations } from "./operations.ts";
import { isWithin, type Reach } from "./reach.ts";
import { schedulableNodes } from "./schedulable-nodes.ts";
import { nextVerbOf } from "./workflows.ts";

/** The largest numbers of groups of nodes, of groups of failed operations, and of examples for one group in the fleet overview of the API. */
const MOST_GROUPS = 1000;
const MOST_FAILURES = 100;
const MOST_EXAMPLES = 10;

const total = sql<number>`count(*)::int`;
/** SQL for the number of all groups that one part of the fleet overview has, including those that the statement's LIMIT leaves out. */
const groups = sql<number>`(count(*) over ())::int`;
const further = (rows: readonly { readonly groups: number }[]): number => (rows[0]?.groups ?? 0) - rows.length;

export async function countNodesByStatus(db: Db, reach: Reach): Promise<Pick<Overview, "nodes" | "more_nodes">> {
  const rows = await db
    .select({
      site_id: nodes.siteId,
      sku_id: nodes.sku,
      status: nodes.status,
      count: total,
      schedulable: sql<number>`(count(*) filter (where ${nodes.id} in ${schedulableNodes}))::int`,
      groups,
    })
    .from(nodes)
    .where(and(ne(nodes.status, "deleted"), isWithin(reach, { site: nodes.siteId })))
    .groupBy(nodes.siteId, nodes.sku, nodes.status)
    .orderBy(nodes.siteId, nodes.sku, nodes.status)
    .limit(MOST_GROUPS);
  return { nodes: rows.map(({ groups: _all, ...row }) => row), more_nodes: further(rows) };
}

type Waiting = Overview["waiting"][number];
type Example = Waiting["examples"][number];

/** SQL for up to `MOST_EXAMPLES` operations of a group of waiting operations, the oldest first. */
const examples = sql<Example[]>`(array_agg(jsonb_build_object('operation_id', ${workflows.id},
  'kind', coalesce(${nodeDecommissions.mode}, 'onboarding'), 'hostname', coalesce(${nodeOnboardings.hostname}, ${nodeDecommissions.hostname}))
  order by ${workflows.updatedAt}, ${workflows.id}))[1:${sql.raw(String(MOST_EXAMPLES))}]`;

/**
 * SQL that is true if changes that the failed operation made outside the database, for example in MAAS, remain; the operator's next verb depends on
 * this.
 */
const notUndone = sql<boolean>`coalesce(jsonb_exists(${workflows.evidence}, ${sql.raw(`'${NOT_UNDONE}'`)}), false)`;

export async function groupWaiting(db: Db, reach: Reach): Promise<Pick<Overview, "waiting" | "more_waiting">> {
  const { failureClass, failureCode, nextAction } = workflows;
  const rows = await db
    .select({
      failureClass,
      failureCode,
      nextAction,
      notUndone,
      groups,
      count: total,
      oldest: sql<string>`min(${workflows.updatedAt})`,
      examples,
    })
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflows.id))
    .where(
      and(
        sql`${workflows.status} in ('failed_retryable', 'failed_manual_intervention')`,
        sql`coalesce(${nodeOnboardings.onboardingId}, ${nodeDecommissions.decommissionId}) is not null`,
        isWithin(reach, { site: workflows.siteId }),
      ),
    )
    .groupBy(failureClass, failureCode, nextAction, notUndone)
    .orderBy(desc(count()), failureClass, failureCode, nextAction, notUndone)
    .limit(MOST_FAILURES);
  const waiting = rows.map(
    (row): Waiting => ({
      failure_class: row.failureClass ?? "unknown",
      error_code: row.failureCode ?? "unknown",
      next_action: row.nextAction,
      next_verb: nextVerbOf({ ...row, evidence: row.notUndone ? { [NOT_UNDONE]: true } : {} }),
      count: row.count,
      oldest_at: toDate(row.oldest).toISOString(),
      examples: row.examples,
    }),
  );
  return { waiting, more_waiting: further(rows) };
}

export async function readSlow(db: Db, reach: Reach): Promise<Overview["slow"]> {
  const filter = { reach, slow: true, statuses: ["running", "compensating"] } as const;
  const page = { limit: MOST_EXAMPLES, after: null, sort: "stage_deadline" } as const;
  const listed = await listOperations(db, filter, page);
  return { count: await countOperations(db, filter), operations: listed.map(({ operation }) => operation) };
}

export async function countDrift(db: Db, reach: Reach): Promise<Overview["drift"]> {
  const rule = sql<Overview["drift"][number]["rule"]>`${nodeMaasState.driftDetails} ->> 'rule'`;
  const severity = sql<Overview["drift"][number]["severity"]>`${nodeMaasState.driftDetails} ->> 'severity'`;
  return db
    .select({ rule, severity, count: total })
    .from(nodeMaasState)
    .where(
      and(
        eq(nodeMaasState.driftDetected, true),
        sql`${nodeMaasState.driftDetails} is not null`,
        isWithin(reach, { site: nodeMaasState.siteId }),
      ),
    )
    .groupBy(sql`1`, sql`2`)
    .orderBy(desc(count()), sql`1`, sql`2`);
}

export const listOpenBreakers = (db: Db, reach: Reach): Promise<ReconcilerBreaker[]> =>
  db
    .select()
    .from(reconcilerBreakers)
    .where(and(sql`${reconcilerBreakers.trippedAt} is not null`, isWithin(reach, { site: reconcilerBreakers.siteId })))
    .orderBy(reconcilerBreakers.trippedAt, reconcilerBreakers.siteId, reconcilerBreakers.kind);

/** The statuses of nodes whose agents must renew their certificates. */
const NEEDS_CERTIFICATE: readonly NodeStatus[] = ["active", "quarantined", "offline", "draining"];

/** An agent renews its certificate long before the certificate's last 4 hours, so an agent whose certificate has less time left cannot renew it. */
const ENDS_SOON: SQL = sql`interval '4 hours'`;

export async function readEndingCertificates(db: Db, reach: Reach): Promise<Overview["certificates"]> {
  const newest = db
    .selectDistinctOn([nodeCertificates.nodeId], {
      nodeId: nodeCertificates.nodeId,
      hostname: nodes.hostname,
      notAfter: nodeCertificates.notAfter,
    })
    .from(nodeCertificates)
    .innerJoin(nodes, and(eq(nodes.id, nodeCertificates.nodeId), eq(nodes.generation, nodeCertificates.generation)))
    .where(
      and(
        sql`${nodes.status} = any(${sql.param([...NEEDS_CERTIFICATE])}::text[])`,
        sql`${nodeCertificates.revokedAt} is null`,
        isWithin(reach, { site: nodes.siteId }),
      ),
    )
    .orderBy(nodeCertificates.nodeId, desc(nodeCertificates.notAfter))
    .as("newest");
  const rows = await db
    .select({
      nodeId: newest.nodeId,
      hostname: newest.hostname,
      notAfter: newest.notAfter,
      ended: sql<number>`(count(*) filter (where ${newest.notAfter} <= now()) over ())::int`,
      all: sql<number>`(count(*) over ())::int`,
    })
    .from(newest)
    .where(sql`${newest.notAfter} < now() + ${ENDS_SOON}`)
    .orderBy(newest.notAfter, newest.nodeId)
    .limit(MOST_EXAMPLES);
  const { ended = 0, all = 0 } = rows[0] ?? {};
  return {
    ending: all - ended,
    ended,
    examples: rows.map(({ nodeId, hostname, notAfter }) => ({
      node_id: nodeId,
      hostname,
      not_after: notAfter.toISOString(),
    })),
  };
}
