import { failure } from "../../../../shared/failures.ts";
import { isHostReleased } from "../../../db/queries/machine-releases.ts";
import { hasEnrolled } from "../../../db/queries/node-certificates.ts";
import type { Tx } from "../../../db/tx.ts";
import { deleteNode, enterRemoving, leaveRemoving } from "../../../node/lifecycle.ts";
import type { Compensation, CompensationCause, Observation } from "../../engine/stage.ts";
import { StageFailure } from "../../stage-failure.ts";
import { cancelWork, currentTask, judgeTask, operationOf, settledTask, startWork } from "../agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { fullFacts, lastSeen, leftBy, leftoverOf } from "../left-by-full.ts";
import { wasRemoved } from "../release-machine.ts";
import { staysDeployed, UNINSTALL, uninstallSeconds } from "../uninstall-work.ts";

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node, decommission, session } = context;
  if (node.status === "deleted") return { kind: "done", message: "The node is deleted already" };
  if (node.status !== "retired" && node.status !== "removing")
    return { kind: "failed", failure: stateConflict(context, node.status, "removed") };
  if (await isHostReleased(context.services.db, node)) {
    return {
      kind: "done",
      message: "The host was released in MAAS, so there is no agent to uninstall; the node is deleted",
      commit: (tx) => finish(tx, context),
    };
  }
  if (node.onboardingMode !== "maas" && !(await hasEnrolled(context.services.db, node.id))) {
    return {
      kind: "done",
      message: "The host never enrolled, so there is no agent to uninstall; the node is deleted",
      commit: (tx) => finish(tx, context),
    };
  }
  const task = await settledTask(context, UNINSTALL);
  if (task?.state === "succeeded") {
    return {
      kind: "done",
      message: `The agent removes itself; the node is deleted and its certificates are revoked.${await left(context)}`,
      details: { task_id: task.id },
      commit: (tx) => finish(tx, context),
    };
  }
  if (decommission.forcedAt !== null && session === null) {
    return {
      kind: "done",
      message: `Removed without the agent, as ${decommission.forcedBy} decided: ${decommission.forcedReason}.${await left(context)}`,
      commit: async (tx) => {
        await cancelWork(tx, operationOf(context), UNINSTALL);
        await finish(tx, context);
      },
    };
  }
  return judgeTask(context, UNINSTALL, task) ?? { kind: "not_started" };
}

/** Returns a warning if MAAS still has the machine deployed, and an empty text otherwise. */
async function left({ services, node, decommission }: DecommissionContext): Promise<string> {
  const stays = await staysDeployed(services.db, node, decommission.maasSystemId);
  return stays === null ? "" : ` ${stays}`;
}

async function finish(tx: Tx, context: DecommissionContext): Promise<void> {
  const step = await deleteNode(tx, context.node.id, context.workflowId, context.decommission.reason);
  if (step.kind === "refused") throw new StageFailure(stateConflict(context, step.actual, "removed"));
}

/** A full decommission that is cancelled after it has removed its node leaves the rest of its work to a person. */
async function staysRemoved(
  context: DecommissionContext,
  cause: CompensationCause,
): Promise<Compensation<DecommissionState>> {
  const { node, decommission, services } = context;
  const message = `Node ${node.hostname} is deleted, which cannot be undone`;
  if (cause !== "cancel") return { kind: "skipped", message };
  const things = leftBy(fullFacts(context, await lastSeen(services.db, decommission)));
  const leaves = leftoverOf(things, { node_id: node.id, maas_system_id: decommission.maasSystemId });
  return { kind: "skipped", message, ...(leaves === null ? {} : { leaves }) };
}

/**
 * In an uninstall, the agent removes nothing from the host before the hub has accepted the agent's result. An operator cannot cancel a remove after
 * the hub has accepted the agent's result of the uninstall.
 */
async function giveUp(
  context: DecommissionContext,
  cause: CompensationCause,
): Promise<Compensation<DecommissionState>> {
  if (wasRemoved(context)) return staysRemoved(context, cause);
  const task = await currentTask(context.services.db, operationOf(context), UNINSTALL);
  if (task?.state === "succeeded" || context.node.status === "deleted") {
    const message = `The agent of ${context.node.hostname} already removes itself, so the remove can no longer be cancelled. Resume to finish the remove.`;
    return {
      kind: "too_late",
      failure: failure("state_ambiguity", "uninstall_accepted", message, { node_id: context.node.id }),
    };
  }
  return {
    kind: "done",
    message: "The node is retired as before; its identity was kept",
    commit: async (tx) => {
      const ended = await cancelWork(tx, operationOf(context), UNINSTALL);
      if (ended?.state === "succeeded") throw new Error("the uninstall was accepted meanwhile");
      await leaveRemoving(tx, context.node.id, context.workflowId, "The remove was given up");
    },
  };
}

/**
 * Changes the node's status `retired -> removing -> deleted` (lifecycle 5.4). The agent uninstalls itself, and then the hub revokes the node's
 * certificates for good.
 */
export const removeGpuaasNodeRecord: DecommissionStageOf<"remove_gpuaas_node_record"> = {
  name: "remove_gpuaas_node_record",
  title: "Have the agent uninstall itself, revoke its certificates and delete the node",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds: uninstallSeconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "uninstall_failed",
        `Uninstalling the agent of ${context.node.hostname} took longer than ${uninstallSeconds(context)} s.`,
        {
          node_id: context.node.id,
          agent_connected: context.session !== null,
          timeout_seconds: uninstallSeconds(context),
        },
      ),
  },
  retry: { maxAttempts: 3, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run: (context) =>
    startWork(context, UNINSTALL, async (tx) => {
      const step = await enterRemoving(tx, context.node.id, context.workflowId, context.decommission.reason);
      if (step.kind === "refused") throw new StageFailure(stateConflict(context, step.actual, "removed"));
    }),
  compensate: giveUp,
};
