import type { WorkflowId } from "../../../shared/ids.ts";
import type { StageEventStatus } from "../../../shared/workflow-status.ts";
import { asc, eq, sql } from "../orm.ts";
import { type WorkflowEvent, workflowEvents } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface StageEventWrite {
  readonly stage: string;
  readonly attempt: number;
  readonly status: StageEventStatus;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The `claimed_at` of stage events proves that one hub's claim of a workflow ends before the next hub's claim begins. */
export interface Claim {
  readonly hubId: string;
  readonly at: string;
}

/** The argument `fence` is the value that the workflow's fencing number has in the transaction that writes the stage events. */
export async function recordStageEvents(
  tx: Tx,
  workflowId: WorkflowId,
  fence: number,
  events: readonly StageEventWrite[],
  claim?: Claim | undefined,
): Promise<void> {
  if (events.length === 0) return;
  await tx.insert(workflowEvents).values(
    events.map((event) => ({
      workflowId,
      fence,
      stage: event.stage,
      attempt: event.attempt,
      status: event.status,
      message: event.message,
      details: event.details ?? {},
      ...(claim === undefined ? {} : { hubId: claim.hubId, claimedAt: sql`${claim.at}::timestamptz` }),
    })),
  );
}

export async function listStageEvents(db: Db | Tx, workflowId: WorkflowId): Promise<WorkflowEvent[]> {
  return db
    .select()
    .from(workflowEvents)
    .where(eq(workflowEvents.workflowId, workflowId))
    .orderBy(asc(workflowEvents.id));
}
