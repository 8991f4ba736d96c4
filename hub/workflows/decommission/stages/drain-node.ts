import { failure } from "../../../../shared/failures.ts";
import type { Observation } from "../../engine/stage.ts";
import { isHistory, judgeTask, queueWork, settledTask, startWork } from "../agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { DRAIN, drainSeconds, undoDrain } from "../drain-work.ts";
import { hasLostSystem, isCleanable, KEEPS_STATUS } from "../keeps-status.ts";
import { hasNoSystem } from "../no-system.ts";

const GONE = { kind: "skipped", message: "The drained system is gone" } as const;

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node, decommission, session } = context;
  if (node.status === "retired" || node.status === "removing" || node.status === "deleted")
    return { kind: "skipped", message: `The node is ${node.status} already` };
  if (hasLostSystem(decommission.mode, node.status))
    return { kind: "skipped", message: "The system that was drained is gone" };
  const keeps = KEEPS_STATUS[decommission.mode];
  if (keeps ? !isCleanable(node.status) : node.status !== "draining")
    return { kind: "failed", failure: stateConflict(context, node.status, "drained") };
  if (await hasNoSystem(context))
    return { kind: "skipped", message: "A reinstall took the system away, so no agent can drain the host" };
  const task = await settledTask(context, DRAIN);
  // On a node that stays in service, somebody may have opened the host to users since an earlier drain by the same operation.
  if (task?.state === "succeeded" && !(keeps && isHistory(context, task)))
    return { kind: "done", message: "The agent has drained the host", details: { task_id: task.id } };
  if (decommission.forcedAt !== null && session === null) {
    return {
      kind: "skipped",
      message: `Continued without the agent, as ${decommission.forcedBy} decided: ${decommission.forcedReason}`,
      // If an operator forces `drain_node`, the stage keeps its task, because after a cancel of the task an agent that had begun the drain would
      // reopen the host.
      commit: async (tx) => void (await queueWork(tx, context, DRAIN)),
    };
  }
  return judgeTask(context, DRAIN, task) ?? { kind: "not_started" };
}

/** Has the agent close the host to new user sessions and end the open sessions (lifecycle 5.2). */
export const drainNode: DecommissionStageOf<"drain_node"> = {
  name: "drain_node",
  title: "Have the agent drain the host: no new sessions, the open ones end",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds: drainSeconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "drain_failed",
        `Draining ${context.node.hostname} took longer than ${drainSeconds(context)} s.`,
        {
          node_id: context.node.id,
          agent_connected: context.session !== null,
          timeout_seconds: drainSeconds(context),
        },
      ),
  },
  retry: { maxAttempts: 3, baseSeconds: 5, maxSeconds: 60 },
  // The engine does not retry `drain_node` for an unreachable agent, because `drain_node` has already waited for the agent (lifecycle 5.8).
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run: (context) => startWork(context, DRAIN),
  // After a failed deploy, a reimage has no drain to undo, because the drained system is gone.
  compensate: async (context, cause) =>
    cause === "failure"
      ? GONE
      : {
          kind: "done",
          message: "If the drain had closed the host to users, the agent opens it again",
          commit: (tx) => undoDrain(tx, context.workflowId, context.decommission, "The drain was given up"),
        },
};
