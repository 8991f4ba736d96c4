import { failure } from "../../../../shared/failures.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { failedSteps, tally } from "../cleaning-steps.ts";
import type { DecommissionContext, DecommissionStageOf } from "../decommission-context.ts";

/** How long the agent has to remove an account. The task itself waits only minutes for the account's processes to end. */
const REVOKE_SECONDS = 1_800;

function tenancyOf({ tenancy, decommission }: DecommissionContext) {
  if (tenancy === null) throw new Error(`decommission ${decommission.decommissionId} ends no allocation`);
  return tenancy;
}

const REVOKE: AgentWork<"allocation.revoke_user"> = {
  type: "allocation.revoke_user",
  undoneBy: null,
  input: (context) => {
    const { allocationId, loginUser } = tenancyOf(context);
    return { allocation_id: allocationId, login_user: loginUser, plan: false };
  },
  workSeconds: () => REVOKE_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) =>
    failure(
      "upstream_transient",
      "cleaning_failed",
      `The account ${tenancyOf(context).loginUser} was not removed from ${context.node.hostname}: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: (context) => `The agent to remove the account ${tenancyOf(context).loginUser}`,
};

/**
 * Removes the tenant's account with its processes, jobs and home folder (lifecycle 5.2). After the stage `revoke_users`, the tenant has no access to
 * the host.
 */
export const revokeUsers: DecommissionStageOf<"revoke_users"> = cleaningStage({
  name: "revoke_users",
  title: "Have the agent remove the tenant's account with its processes, jobs and home",
  work: REVOKE,
  nothingToDo: ({ tenancy }) => (tenancy === null ? "The node had no tenant" : null),
  decide: (context, { steps }, task) => {
    const failed = failedSteps(context, steps, task);
    if (failed !== null) return { kind: "failed", failure: failed };
    return {
      kind: "done",
      message: `The account ${tenancyOf(context).loginUser} is gone: ${tally(steps)}`,
      details: { task_id: task.id },
    };
  },
});
