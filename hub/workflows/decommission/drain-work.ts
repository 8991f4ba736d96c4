import { failure } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { closedHosts } from "../../db/queries/closed-hosts.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import type { NodeDecommission, Task } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { AGENT_MAY_RETURN_SECONDS, openHost } from "../../node/open-host.ts";
import { type AgentWork, cancelWork } from "./agent-work.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { KEEPS_STATUS } from "./keeps-status.ts";

/** A drain task's deadline is `DRAIN_MARGIN_SECONDS` after the deadline for user sessions, because the hub may have to repeat a lost delivery. */
const DRAIN_MARGIN_SECONDS = 1_800;

type Drained = Pick<NodeDecommission, "nodeId" | "mode">;

const isForced = (context: DecommissionContext): boolean => context.decommission.forcedAt !== null;

const drainWorkSeconds = ({ input }: DecommissionContext): number => input.deadline_seconds + DRAIN_MARGIN_SECONDS;

/** A forced drain does not make the timeout of the stage `drain_node` longer, because no stage waits for a forced drain. */
export const drainSeconds = (context: DecommissionContext): number =>
  context.input.agent_wait_seconds + drainWorkSeconds(context);

export const DRAIN: AgentWork<"node.drain"> = {
  type: "node.drain",
  undoneBy: "node.undrain",
  input: (context) => ({
    reason: context.decommission.reason,
    deadline_seconds: isForced(context) ? 0 : context.input.deadline_seconds,
    force: context.input.force || isForced(context),
  }),
  // No stage waits for a forced drain, so an absent agent carries out its drain task when the agent connects.
  workSeconds: (context) => (isForced(context) ? AGENT_MAY_RETURN_SECONDS : drainWorkSeconds(context)),
  isAskedFor: (context, task) => {
    const input = TASKS["node.drain"].input.safeParse(task.input);
    return !isForced(context) || (input.success && input.data.force && input.data.deadline_seconds === 0);
  },
  failed: (context, task, evidence) => {
    const told = { ...evidence, remaining_users: remainingUsers(task) };
    const why = task.errorMessage ?? `the task is ${task.state}`;
    const message = `Host ${context.node.hostname} was not drained: ${why}`;
    // A `failed` task has the code `deadline_passed` from the agent; the hub gives the code `deadline_passed` only to expired tasks.
    const byPeople =
      task.state === "cancelled" ||
      (task.state === "failed" && ["deadline_passed", "session_survived"].includes(task.errorCode ?? ""));
    return byPeople
      ? failure("state_ambiguity", "drain_incomplete", message, told)
      : failure("upstream_transient", "drain_failed", message, told);
  },
  waitsFor: (_context, task) => {
    const users = remainingUsers(task);
    return users.length === 0 ? "The agent to drain the host" : `Sessions of ${users.join(", ")} to end`;
  },
};

function remainingUsers(task: Task): readonly string[] {
  const progress = TASKS["node.drain"].progress.safeParse(task.progress);
  return progress.success ? progress.data.remaining_users.slice(0, 20) : [];
}

/**
 * Cancels the open task of a drain, and queues an undrain if the host may be closed to users. In a decommission mode that makes its node `draining`,
 * `undoDrain` queues an undrain only while the operation owns the node's status.
 */
export async function undoDrain(tx: Tx, workflowId: WorkflowId, drained: Drained, reason: string): Promise<void> {
  const { nodeId, mode } = drained;
  await cancelWork(tx, { nodeId, workflowId }, DRAIN);
  const node = await lockNode(tx, nodeId);
  if (!KEEPS_STATUS[mode] && (node?.status !== "draining" || node.operationId !== workflowId)) return;
  const closed = await closedHosts(tx, [nodeId]);
  if (closed.has(nodeId)) await openHost(tx, { nodeId, workflowId, reason });
}
