import { failure } from "../../../../shared/failures.ts";
import { isUnfinished } from "../../../../shared/task-state.ts";
import { TASKS } from "../../../../shared/tasks/index.ts";
import { readNode } from "../../../db/queries/nodes.ts";
import { countTasksOf, newestTaskOf, readTask } from "../../../db/queries/task-reads.ts";
import { cancelTask, enqueueTask, lapseTasks } from "../../../db/queries/tasks.ts";
import { waitKey } from "../../../db/queries/workflow-wakes.ts";
import type { Task } from "../../../db/schema/index.ts";
import { checkFailure, judgeCheck, storeCheck } from "../../../node/hardware-check.ts";
import type { Observation, Outcome, Wait } from "../../engine/stage.ts";
import { activateNode } from "../../provisioning/activate-node.ts";
import { provisioningOf } from "../../provisioning/context.ts";
import { machineTaken } from "../../provisioning/machine.ts";
import { inFencedTx } from "../../services.ts";
import { UNKNOWN_TYPE } from "../../unknown-task-type.ts";
import type { OnboardContext, OnboardStage } from "../context.ts";
import type { OnboardState } from "../onboard-state.ts";

const TYPE = "node.check_hardware";
/** How long the agent may take to inspect the hardware; after a boot, the inspection waits some minutes for NVLink. */
const CHECK_SECONDS = 900;
/** The stage `check_hardware` waits longer than its task may take, so that the stage reports how the task ended. */
const STAGE_SECONDS = CHECK_SECONDS + 60;
const LOOK_AGAIN_SECONDS = 15;

const waitFor = (task: Task): Wait<OnboardState> => ({
  kind: "wait",
  reason: task.state === "running" ? "The agent to look at the host's hardware" : `The agent to take the task ${TYPE}`,
  seconds: LOOK_AGAIN_SECONDS,
  on: waitKey.task(task.id),
});

const operationOf = (context: OnboardContext) => ({
  nodeId: provisioningOf(context).nodeId,
  workflowId: context.workflowId,
});

/** Returns the task of the stage's present attempt, because a task that ended before this attempt says nothing about the host's present hardware. */
async function currentTask(context: OnboardContext): Promise<Task | null> {
  const task = await newestTaskOf(context.services.db, operationOf(context), [TYPE]);
  if (task === null || (task.finishedAt !== null && task.finishedAt < context.enteredAt)) return null;
  if (!isUnfinished(task.state) || task.leaseUntil === null || task.leaseUntil > context.now) return task;
  return inFencedTx(context, async (tx) => {
    await lapseTasks(tx, task.id);
    return readTask(tx, task.id);
  });
}

/**
 * The stage `check_hardware` also checks that nobody has taken the machine in MAAS, because the node of such a machine must never become active
 * (decision M2).
 */
async function observe(context: OnboardContext): Promise<Observation<OnboardState>> {
  const taken = await machineTaken("check_hardware", context);
  if (taken !== null) return taken;
  const task = await currentTask(context);
  if (task === null) return { kind: "not_started" };
  if (isUnfinished(task.state)) return waitFor(task);
  const { hostname } = context.host;
  const evidence = { node_id: task.nodeId, task_id: task.id, task_state: task.state, task_error: task.errorCode };
  if (task.errorCode === UNKNOWN_TYPE) {
    const message = `The agent of ${hostname} is older than the hub and has no task ${TYPE}. Update the agent and resume.`;
    return { kind: "failed", failure: failure("upstream_transient", "agent_outdated", message, evidence) };
  }
  const result = TASKS[TYPE].result.safeParse(task.result);
  if (task.state !== "succeeded" || !result.success) {
    const why =
      task.state === "succeeded" ? "its result cannot be read" : (task.errorMessage ?? `the task is ${task.state}`);
    const message = `The agent of ${hostname} did not tell its hardware: ${why}`.slice(0, 1_000);
    return { kind: "failed", failure: failure("hardware_mismatch", "hardware_unread", message, evidence) };
  }
  const node = await readNode(context.services.db, task.nodeId);
  if (node === null) throw new Error("the node of the onboarding is gone");
  const check = judgeCheck(node, context.sku, result.data);
  const failed = checkFailure(hostname, context.sku.id, check, evidence);
  if (failed !== null)
    return { kind: "failed", failure: failed, commit: (tx) => storeCheck(tx, node, result.data, check) };
  return {
    kind: "done",
    message: "The host has what its SKU says, and is healthy; the node is active",
    details: { node_id: node.id, generation: node.generation, task_id: task.id },
    commit: async (tx) => {
      await storeCheck(tx, node, result.data, check);
      await activateNode(tx, context);
    },
  };
}

async function run(context: OnboardContext): Promise<Outcome<OnboardState>> {
  const { nodeId } = provisioningOf(context);
  const task = await inFencedTx(context, async (tx) => {
    const number = (await countTasksOf(tx, operationOf(context), TYPE)) + 1;
    const queued = await enqueueTask(tx, {
      nodeId,
      workflowId: context.workflowId,
      type: TYPE,
      input: {},
      idempotencyKey: `${TYPE}/${context.workflowId}/${number}`,
      deadlineSeconds: CHECK_SECONDS,
    });
    return queued.task;
  });
  return waitFor(task);
}

/** Compares the host with its SKU before the node takes work: a host that lacks a GPU or has broken GPUs never becomes active (decision H2). */
export const checkHardware: OnboardStage<"check_hardware"> = {
  name: "check_hardware",
  title: "Compare the host's hardware with its SKU, then make the node active",
  reentry: { rule: "observe_first", observe },
  timeout: {
    seconds: () => STAGE_SECONDS,
    failure: ({ host, state }) =>
      failure(
        "hardware_mismatch",
        "hardware_unread",
        `The agent of ${host.hostname} did not tell its hardware within ${STAGE_SECONDS} s.`,
        { node_id: state.node_id ?? null, timeout_seconds: STAGE_SECONDS },
      ),
  },
  retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
  run,
  compensate: async (context) => {
    const { node_id: nodeId } = context.state;
    // The compensation of an onboarding visits each stage, also those that the onboarding has not reached.
    if (typeof nodeId !== "string")
      return { kind: "skipped", message: "No node was made whose hardware could be checked" };
    const operation = { nodeId, workflowId: context.workflowId };
    return {
      kind: "done",
      message: `The task ${TYPE} is cancelled if the agent had not ended it`,
      commit: async (tx) => {
        const task = await newestTaskOf(tx, operation, [TYPE]);
        if (task !== null && isUnfinished(task.state)) await cancelTask(tx, task.id);
      },
    };
  },
};
