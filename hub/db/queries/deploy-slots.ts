import type { ProfileId, WorkflowId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, eq, like, sql } from "../orm.ts";
import { workflowSubjects } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { wakeWorkflows } from "./workflow-wakes.ts";

const deploySlot = (profileId: ProfileId): string => `deploy-slot:${profileId}/`;

/**
 * Takes one of the profile's `deploy_max_parallel` places, or keeps the place that the workflow holds. False if all places are taken. The hosts of a
 * batch ask at the same moment. The lock serializes them, so each finds its own free place; without the lock all would try the same place and all but
 * one would fail.
 */
export async function takeDeploySlot(tx: Tx, id: WorkflowId, profileId: ProfileId, most: number): Promise<boolean> {
  const prefix = deploySlot(profileId);
  await lockUntilCommit(tx, "deploy_slots", prefix);
  await tx.execute(sql`
    insert into workflow_subjects (subject, workflow_id)
    select ${prefix} || n, ${id}::uuid from generate_series(1, ${most}::int) n
    where not exists (select 1 from workflow_subjects s where s.subject = ${prefix} || n)
      and not exists (select 1 from workflow_subjects s where s.workflow_id = ${id}::uuid and s.subject like 'deploy-slot:%')
    order by n limit 1
    on conflict do nothing`);
  const held = await tx
    .select({ subject: workflowSubjects.subject })
    .from(workflowSubjects)
    .where(and(eq(workflowSubjects.workflowId, id), like(workflowSubjects.subject, `${prefix}%`)));
  return held.length > 0;
}

/** The key on which a deploy waits for a free place. */
export const deploySlotKey = (profileId: ProfileId): string => deploySlot(profileId);

export async function releaseDeploySlot(tx: Tx, id: WorkflowId): Promise<void> {
  const freed = await tx
    .delete(workflowSubjects)
    .where(and(eq(workflowSubjects.workflowId, id), like(workflowSubjects.subject, "deploy-slot:%")))
    .returning({ subject: workflowSubjects.subject });
  await wakeWorkflows(
    tx,
    freed.map(({ subject }) => subject.slice(0, subject.lastIndexOf("/") + 1)),
  );
}
