import { type Evidence, type Failure, failure } from "../../../../shared/failures.ts";
import { readBaseline } from "../../../db/queries/node-baselines.ts";
import { readTask } from "../../../db/queries/task-reads.ts";
import { waitKey } from "../../../db/queries/workflow-wakes.ts";
import { orderBaseline, storeBaselines } from "../../../node/baseline.ts";
import type { Observation, Outcome } from "../../engine/stage.ts";
import { inFencedTx } from "../../services.ts";
import { isHistory, judgeTask, stageSeconds, type WatchedWork } from "../agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { isCleanable } from "../keeps-status.ts";

/**
 * The agent's walk over a large root file system takes minutes, so the agent may take up to `BASELINE_SECONDS` for the snapshot of the new system
 * (the baseline).
 */
const BASELINE_SECONDS = 3_600;
const LOOK_AGAIN_SECONDS = 5;

const notTaken = ({ node }: Pick<DecommissionContext, "node">, why: string, evidence: Evidence): Failure =>
  failure(
    "upstream_transient",
    "cleaning_failed",
    `The baseline of the new system of ${node.hostname} was not taken: ${why}`.slice(0, 1_000),
    { node_id: node.id, ...evidence },
  );

/**
 * The hub may have ordered the snapshot of the clean host (the baseline) when the node became active, so the snapshot's task belongs to the node and
 * not to the reimage.
 */
const BASELINE: WatchedWork<"node.validate_clean"> = {
  type: "node.validate_clean",
  undoneBy: null,
  workSeconds: () => BASELINE_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) => notTaken(context, task.errorMessage ?? `the task is ${task.state}`, evidence),
  waitsFor: () => "The agent to take the baseline of the new system",
};

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node, services } = context;
  if (!isCleanable(node.status)) return { kind: "failed", failure: stateConflict(context, node.status, "cleaned") };
  const known = await inFencedTx(context, async (tx) => {
    await storeBaselines(tx, node.id);
    return readBaseline(tx, node.id, node.generation);
  });
  if (known === null) return { kind: "not_started" };
  const { taskId, snapshot, problem } = known.baseline;
  if (snapshot !== null)
    return { kind: "done", message: "The baseline of the new system is taken", details: { task_id: taskId } };
  const task = await readTask(services.db, taskId);
  if (task === null) return { kind: "not_started" };
  if (task.state === "succeeded" && problem === null)
    return { kind: "wait", reason: "The hub to store the baseline of the new system", seconds: 1 };
  if (problem === null || isHistory(context, task))
    return judgeTask(context, BASELINE, task) ?? { kind: "not_started" };
  return {
    kind: "failed",
    failure: notTaken(context, problem, { task_id: taskId }),
    patch: { failed_task_id: taskId },
  };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const { node } = context;
  const taskId = await inFencedTx(context, (tx) =>
    orderBaseline(tx, node, {
      requestedBy: "hub",
      reason: `the ${context.decommission.mode} of the node gave its host a new system`,
    }),
  );
  const reason = "The agent to take the baseline of the new system";
  return { kind: "wait", reason, seconds: LOOK_AGAIN_SECONDS, on: waitKey.task(taskId) };
}

const seconds = (context: DecommissionContext): number => stageSeconds(context, BASELINE);

/**
 * Waits for the baseline, a snapshot of the new system that the agent takes before it works on the GPUs (architecture 14.4). The later stage
 * `validate_clean_node` compares the host with the snapshot that the agent took of the new system.
 */
export const takeBaseline: DecommissionStageOf<"take_baseline"> = {
  name: "take_baseline",
  title: "Have the agent take the baseline of the new system",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) =>
      notTaken(context, `the agent did not take it within ${seconds(context)} s. Resume.`, {
        agent_connected: context.session !== null,
      }),
  },
  retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run,
};
