import type { ProfileId, WorkflowId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, eq, like } from "../orm.ts";
import { workflowSubjects } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { releaseSubjects, takeFreeNumber } from "./workflow-subjects.ts";
import { wakeWorkflows } from "./workflow-wakes.ts";

/** The common prefix of the names of a profile's deploy slots; a deploy waits while all slots of its profile are taken. */
export const deploySlots = (profileId: ProfileId): string => `deploy-slot:${profileId}/`;
const ANY_SLOT = "deploy-slot:%";

/**
 * Takes one of the profile's `deploy_max_parallel` deploy slots, of which each deploy needs one, unless the workflow already holds a slot. All hosts
 * of an onboarding batch try to take a deploy slot at the same moment. The advisory lock lets one host after the other search for a free deploy slot.
 * Without the advisory lock, all hosts of a batch would try the same deploy slot, and all but one host would fail.
 */
export async function takeDeploySlot(tx: Tx, id: WorkflowId, profileId: ProfileId, most: number): Promise<boolean> {
  const prefix = deploySlots(profileId);
  await lockUntilCommit(tx, "deploy_slots", prefix);
  await takeFreeNumber(tx, id, { prefix, most, unlessHeld: ANY_SLOT });
  const held = await tx
    .select({ subject: workflowSubjects.subject })
    .from(workflowSubjects)
    .where(and(eq(workflowSubjects.workflowId, id), like(workflowSubjects.subject, `${prefix}%`)));
  return held.length > 0;
}

export async function releaseDeploySlot(tx: Tx, id: WorkflowId): Promise<void> {
  const freed = await releaseSubjects(tx, id, ANY_SLOT);
  await wakeWorkflows(
    tx,
    freed.map((subject) => subject.slice(0, subject.lastIndexOf("/") + 1)),
  );
}
