import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, inArray, like, sql } from "../orm.ts";
import { workflowSubjects } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** At most one workflow holds a subject, such as a node or a machine, and a workflow holds its subjects until the workflow is over. */
export const subjectOf = {
  host: (siteId: SiteId, hostname: string): string => `host:${siteId}/${hostname}`,
  bmc: (siteId: SiteId, address: string): string => `bmc:${siteId}/${address}`,
  node: (nodeId: NodeId): string => `node:${nodeId}`,
} as const;

export interface SubjectClaim {
  readonly subject: string;
  readonly workflowId: WorkflowId;
}

async function insertSubjects(tx: Tx, claims: readonly SubjectClaim[]): Promise<void> {
  // Every transaction takes the subjects of workflows, such as nodes, in alphabetical order, because two transactions with different orders can
  // deadlock.
  const ordered = claims
    .map(({ subject, workflowId }) => ({ subject, workflowId }))
    .sort((a, b) => (a.subject < b.subject ? -1 : 1));
  await tx.insert(workflowSubjects).values(ordered).onConflictDoNothing();
}

const MOST_CLAIMS = 5;

/**
 * Claims subjects (objects such as a node or a machine that only one workflow may change) for workflows, and returns which workflow now holds each
 * subject. A workflow may release a subject, such as a node, between the claim and the read of the subject's row, so that nobody holds the subject.
 * If another workflow has just released one of the wanted subjects, so that nobody holds it, `takeSubjects` claims all subjects anew, and throws
 * after `MOST_CLAIMS` claims.
 */
export async function takeSubjects(tx: Tx, claims: readonly SubjectClaim[]): Promise<ReadonlyMap<string, WorkflowId>> {
  const subjects = [...new Set(claims.map(({ subject }) => subject))];
  for (let claimed = 0; claimed < MOST_CLAIMS; claimed += 1) {
    await insertSubjects(tx, claims);
    const rows = await tx.select().from(workflowSubjects).where(inArray(workflowSubjects.subject, subjects));
    if (rows.length === subjects.length) return new Map(rows.map((row) => [row.subject, row.workflowId]));
  }
  throw new Error(`the holders of ${subjects.length} workflow subjects changed during ${MOST_CLAIMS} claims`);
}

/**
 * Reserves the subjects (objects such as a node or a machine) for the workflow `id` and returns null, or returns another workflow that already holds
 * one of them.
 */
export async function holdSubjects(tx: Tx, id: WorkflowId, subjects: readonly string[]): Promise<WorkflowId | null> {
  const holders = await takeSubjects(
    tx,
    subjects.map((subject) => ({ subject, workflowId: id })),
  );
  return [...holders.values()].find((holder) => holder !== id) ?? null;
}

/**
 * Gives the workflow `id` the subject whose name is the prefix and the lowest free number up to `most`. `takeFreeNumber` reserves nothing for a
 * workflow that already holds a subject whose name matches the LIKE pattern `unlessHeld`.
 */
export async function takeFreeNumber(
  tx: Tx,
  id: WorkflowId,
  { prefix, most, unlessHeld }: { readonly prefix: string; readonly most: number; readonly unlessHeld: string },
): Promise<void> {
  await tx.execute(sql`
    insert into workflow_subjects (subject, workflow_id)
    select ${prefix} || n, ${id}::uuid from generate_series(1, ${most}::int) n
    where not exists (select 1 from workflow_subjects s where s.subject = ${prefix} || n)
      and not exists (select 1 from workflow_subjects s where s.workflow_id = ${id}::uuid and s.subject like ${unlessHeld})
    order by n limit 1
    on conflict do nothing`);
}

/**
 * Releases all subjects (objects such as a node or a machine) that a workflow holds, or only those that match the LIKE pattern `pattern`, and returns
 * the released subjects.
 */
export async function releaseSubjects(tx: Tx, id: WorkflowId, pattern?: string): Promise<string[]> {
  const freed = await tx
    .delete(workflowSubjects)
    .where(
      and(
        eq(workflowSubjects.workflowId, id),
        pattern === undefined ? undefined : like(workflowSubjects.subject, pattern),
      ),
    )
    .returning({ subject: workflowSubjects.subject });
  return freed.map(({ subject }) => subject);
}

/** Frees all subjects of the workflows. */
export async function releaseSubjectsOf(tx: Tx, ids: readonly WorkflowId[]): Promise<void> {
  if (ids.length > 0) await tx.delete(workflowSubjects).where(inArray(workflowSubjects.workflowId, [...ids]));
}

export const onboardingOfHost = (tx: Tx, siteId: SiteId, hostname: string): Promise<WorkflowId | null> =>
  readHolder(tx, subjectOf.host(siteId, hostname));

export const operationOfNode = (tx: Tx, nodeId: NodeId): Promise<WorkflowId | null> =>
  readHolder(tx, subjectOf.node(nodeId));

export async function operationsOfNodes(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, WorkflowId>> {
  if (nodeIds.length === 0) return new Map();
  const nodeOf = new Map(nodeIds.map((nodeId) => [subjectOf.node(nodeId), nodeId]));
  const rows = await db
    .select()
    .from(workflowSubjects)
    .where(inArray(workflowSubjects.subject, [...nodeOf.keys()]));
  return new Map(
    rows.flatMap(({ subject, workflowId }) => {
      const nodeId = nodeOf.get(subject);
      return nodeId === undefined ? [] : [[nodeId, workflowId]];
    }),
  );
}

async function readHolder(tx: Tx, subject: string): Promise<WorkflowId | null> {
  const [row] = await tx
    .select({ id: workflowSubjects.workflowId })
    .from(workflowSubjects)
    .where(eq(workflowSubjects.subject, subject));
  return row?.id ?? null;
}
