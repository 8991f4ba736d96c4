import { failure } from "../../../../shared/failures.ts";
import { closedHosts } from "../../../db/queries/closed-hosts.ts";
import type { Tx } from "../../../db/tx.ts";
import { quarantineAgain, returnCleanNode } from "../../../node/lifecycle.ts";
import type { Observation } from "../../engine/stage.ts";
import { StageFailure } from "../../stage-failure.ts";
import { cancelWork, judgeTask, operationOf, settledTask, stageSeconds, startWork } from "../agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { deploysAnew, isCleanable } from "../keeps-status.ts";
import { UNDRAIN } from "../undrain-work.ts";

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node } = context;
  if (!isCleanable(node.status)) return { kind: "failed", failure: stateConflict(context, node.status, "enabled") };
  const closed = await closedHosts(context.services.db, [node.id]);
  const enabled = {
    kind: "done",
    message:
      context.decommission.mode === "reinstall"
        ? "The host is in service again"
        : "The node is clean and takes new work",
    commit: (tx: Tx) => enable(tx, context),
  } as const;
  if (!closed.has(node.id)) return enabled;
  const task = await settledTask(context, UNDRAIN);
  return judgeTask(context, UNDRAIN, task) ?? { kind: "not_started" };
}

async function enable(tx: Tx, context: DecommissionContext): Promise<void> {
  const { decommission, node } = context;
  // A storage cleanup cleans only a part of the host, so its success does not prove that the cause of an earlier quarantine is gone.
  const before = decommission.mode === "storage_cleanup" && decommission.priorStatus === "quarantined";
  const step = await returnCleanNode(tx, node.id, decommission.reason, { endsQuarantine: !before });
  if (step.kind === "refused") throw new StageFailure(stateConflict(context, step.actual, "enabled"));
  if (deploysAnew(decommission.mode) && decommission.priorQuarantinedBy === "operator")
    await quarantineAgain(tx, node.id);
}

const seconds = (context: DecommissionContext): number => stageSeconds(context, UNDRAIN);

/**
 * Lets users log in to the host again, and lifts the operation's cordon (lifecycle 5.2). A node that a cleanup quarantined becomes `active`, because
 * the present decommission has found the host clean (decision N4). The stage `enable_node` does not lift a person's cordon or quarantine.
 */
export const enableNode: DecommissionStageOf<"enable_node"> = {
  name: "enable_node",
  title: "Open the host again and lift the cordon",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "drain_failed",
        `Opening host ${context.node.hostname} took longer than ${seconds(context)} s.`,
        {
          node_id: context.node.id,
          agent_connected: context.session !== null,
          timeout_seconds: seconds(context),
        },
      ),
  },
  retry: { maxAttempts: 3, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run: (context) => startWork(context, UNDRAIN),
  compensate: async (context) => ({
    kind: "done",
    message: "The end of the operation decides whether the node takes new work",
    commit: async (tx) => void (await cancelWork(tx, operationOf(context), UNDRAIN)),
  }),
};
