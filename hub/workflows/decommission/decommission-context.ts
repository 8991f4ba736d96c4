import { z } from "zod";
import { failure } from "../../../shared/failures.ts";
import { NodeId, TaskId } from "../../../shared/ids.ts";
import type { DecommissionStage } from "../../../shared/workflow-status.ts";
import { readOpenSession } from "../../db/queries/agent-sessions.ts";
import { type DecommissionRows, readDecommissionRows } from "../../db/queries/decommissions.ts";
import type { AgentSession } from "../../db/schema/index.ts";
import type { Stage, StageRun, StagesOf } from "../engine/stage.ts";
import type { WorkflowServices } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";

/** What the stages of a decommission use. */
export type DecommissionServices = Pick<WorkflowServices, "db" | "inTx" | "log" | "maas">;

/** Knobs of the request; what the operation is about stands in its own row. Fields of later modes are optional (decision W3). */
export const DecommissionInput = z.object({
  node_id: NodeId,
  deadline_seconds: z.number().default(0),
  agent_wait_seconds: z.number().default(0),
  force: z.boolean().default(false),
});
export type DecommissionInput = z.output<typeof DecommissionInput>;

export const DecommissionState = z.object({
  /** The task whose failure was told last: the stage's next try queues another one. */
  failed_task_id: TaskId.nullable().optional(),
  /** The provisioning whose release may have been asked for: written before the call is made. */
  release_intent: z.number().nullable().optional(),
  /** MAAS's failure of the release was told: the stage's next try asks for it again. */
  release_failure_told: z.boolean().nullable().optional(),
  /** MAAS took the order to power the machine off; what becomes of it is looked at. */
  power_off_asked: z.boolean().nullable().optional(),
  /** What the BMC said last of the released machine. */
  power_state: z.string().nullable().optional(),
});
export type DecommissionState = z.output<typeof DecommissionState>;

export interface DecommissionContext extends StageRun<DecommissionInput, DecommissionState>, DecommissionRows {
  readonly services: DecommissionServices;
  /** The agent's open session of the node's present provisioning. */
  readonly session: AgentSession | null;
}
export type DecommissionStageOf<Name extends DecommissionStage = DecommissionStage> = Stage<
  DecommissionContext,
  DecommissionState,
  Name
>;
export type DecommissionStages<Names extends readonly DecommissionStage[]> = StagesOf<
  Names,
  DecommissionContext,
  DecommissionState
>;

export async function buildDecommissionContext(
  services: DecommissionServices,
  run: StageRun<DecommissionInput, DecommissionState>,
): Promise<DecommissionContext> {
  const rows = await readDecommissionRows(services.db, run.workflowId);
  if (rows === null) {
    const message = `The node of decommission ${run.workflowId} has no record. Cancel the decommission.`;
    throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message));
  }
  const session = await readOpenSession(services.db, rows.node.id, rows.node.generation);
  return { ...run, ...rows, session, services };
}

/** Moves of the record only: nothing outside is touched (lifecycle 5.8: three tries). */
export const RECORD_RETRY = { maxAttempts: 3, baseSeconds: 1, maxSeconds: 10 } as const;

/** A stage that only moves the record is over in no time, or the hub cannot write at all. */
export const recordTimeout = (what: string): DecommissionStageOf["timeout"] => ({
  seconds: () => 300,
  failure: (context) =>
    failure("upstream_transient", "hub_internal_error", `${what} of ${context.node.hostname} could not be written.`, {
      node_id: context.node.id,
      node_status: context.node.status,
    }),
});

/** The node is something that the operation cannot go on from. */
export const stateConflict = (context: DecommissionContext, actual: string | null, wanted: string) =>
  failure(
    "state_ambiguity",
    "node_state_conflict",
    `Node ${context.node.hostname} is ${actual ?? "gone"}, so it cannot be ${wanted}. Decide what it is to be: rerun once that is so, or cancel.`,
    { node_id: context.node.id, node_status: actual },
  );
