import { type Failure, failure } from "../../../../shared/failures.ts";
import { noteRootBy } from "../../../db/queries/allocations.ts";
import type { Task } from "../../../db/schema/index.ts";
import type { Tx } from "../../../db/tx.ts";
import { isSoftResetBarred } from "../../../node/turnover-mode.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { failedSteps, tally } from "../cleaning-steps.ts";
import type { DecommissionContext, DecommissionStageOf } from "../decommission-context.ts";

/** The agent has `REVOKE_SECONDS` to remove a tenant's account; for the end of the account's processes it waits only some minutes of this time. */
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
 * The failure of a soft reset if the tenant got the rights of root without a grant (decision C4). A tenant with the rights of root may have changed
 * what the agent reads, so the agent may miss traces of that tenant.
 */
function rootFound(
  { decommission, node, profile, tenancy }: DecommissionContext,
  rootBy: readonly string[],
  task: Pick<Task, "id">,
): Failure | null {
  const grantsRoot = rootBy.length > 0 || tenancy?.hadRoot === true;
  const facts = { grantsRoot, onboardingMode: node.onboardingMode, policy: profile };
  if (decommission.mode !== "soft_reset" || !isSoftResetBarred(facts)) return null;
  const how = rootBy.length === 0 ? "the rights of root" : `the rights of root by ${rootBy.join(", ")}`;
  return failure(
    "state_ambiguity",
    "tenant_had_root",
    `The tenant of ${node.hostname} could get ${how}, so a soft reset cannot show that the host is clean.`,
    { node_id: node.id, task_id: task.id, root_by: rootBy },
  );
}

/**
 * Has the agent remove the tenant's account with its processes, jobs and home folder (lifecycle 5.2). After the stage `revoke_users`, the tenant has
 * no access to the host.
 */
export const revokeUsers: DecommissionStageOf<"revoke_users"> = cleaningStage({
  name: "revoke_users",
  title: "Have the agent remove the tenant's account with its processes, jobs and home",
  work: REVOKE,
  nothingToDo: ({ tenancy }) => (tenancy === null ? "The node had no tenant" : null),
  decide: (context, { steps, root_by }, task) => {
    const { allocationId } = tenancyOf(context);
    const commit = (tx: Tx) => noteRootBy(tx, allocationId, root_by);
    const failed = failedSteps(context, steps, task);
    if (failed !== null) return { kind: "failed", failure: failed, commit };
    const barred = rootFound(context, root_by, task);
    if (barred !== null) return { kind: "failed", failure: barred, commit };
    return {
      kind: "done",
      commit,
      message: `The account ${tenancyOf(context).loginUser} is gone: ${tally(steps)}`,
      details: { task_id: task.id },
    };
  },
});
