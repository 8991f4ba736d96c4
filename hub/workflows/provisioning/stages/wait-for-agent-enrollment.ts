import { type Failure, failure } from "../../../../shared/failures.ts";
import { conditionHolds, readConditions } from "../../../db/queries/node-conditions.ts";
import { setNodeHost } from "../../../db/queries/nodes.ts";
import { waitKey } from "../../../db/queries/workflow-wakes.ts";
import { SECRET_PATHS } from "../../../secrets/port.ts";
import type { Done, Failed, Observation, Wait } from "../../engine/stage.ts";
import { WAIT_RETRY } from "../../services.ts";
import { activateNode } from "../activate-node.ts";
import { absenceHint, agentAbsent } from "../agent-absence.ts";
import { agentSession, waitForAgent } from "../agent-presence.ts";
import { type ProvisionContext, type ProvisionStage, provisioningOf } from "../context.ts";
import { machineTaken } from "../machine.ts";
import type { ProvisionState } from "../provision-state.ts";

const LOOK_AGAIN_SECONDS = 15;

async function look(context: ProvisionContext): Promise<Exclude<Observation<ProvisionState>, { kind: "not_started" }>> {
  const { nodeId, generation } = provisioningOf(context);
  const { db } = context.services;
  const taken = await machineTaken("wait_for_agent_enrollment", context);
  if (taken !== null) return taken;
  if ((await agentSession(context)) === null) return waitForAgent(context);
  if (!(await conditionHolds(db, nodeId, "agent.healthy", generation))) {
    const said = await absenceHint(context);
    return {
      kind: "wait",
      reason: `The agent to report that it is healthy${said === null ? "" : `; ${said}`}`.slice(0, 300),
      seconds: LOOK_AGAIN_SECONDS,
      on: waitKey.node(nodeId),
    };
  }
  return (await firstBootUnfinished(context)) ?? enlist(context);
}

const OWNERS = [
  { type: "bootstrap.site", code: "site_bootstrap_failed", whose: "The site's own bootstrap bundle" },
  { type: "bootstrap.muster", code: "host_bootstrap_failed", whose: "A part of Muster's bootstrap" },
] as const;

/**
 * Judges the first boot by the agent's report about the site's scripts and about Muster's scripts (lifecycle 9). A host whose image already contains
 * the agent possibly runs no bootstrap scripts at its first boot, so a missing report about the scripts is no failure.
 */
async function firstBootUnfinished(
  context: ProvisionContext,
): Promise<Wait<ProvisionState> | Failed<ProvisionState> | null> {
  const { nodeId, generation } = provisioningOf(context);
  const wait = (reason: string): Wait<ProvisionState> => ({
    kind: "wait",
    reason,
    seconds: LOOK_AGAIN_SECONDS,
    on: waitKey.node(nodeId),
  });
  const told = await readConditions(context.services.db, nodeId, generation);
  for (const { type, code, whose } of OWNERS) {
    const condition = told.find((one) => one.type === type);
    if (condition?.status !== "False") continue;
    // A report of a failed first boot may be out of date if it is older than the workflow's entry into the stage. After a report of a failed first
    // boot, an operator may have corrected the fault and resumed the workflow. The agent repeats its report about the first boot every two minutes.
    if (condition.observedAt < context.enteredAt)
      return wait(`The agent to check the first boot again; its last report: ${condition.message}`.slice(0, 300));
    const message = `${whose} failed on ${context.host.hostname}: ${condition.message}. Remove the cause, run "systemctl restart muster-bootstrap" on the host, then resume.`;
    const evidence = { node_id: nodeId, condition: type, bootstrap: condition.message };
    return { kind: "failed", failure: failure("post_deploy_connectivity_failure", code, message, evidence) };
  }
  const unfinished = told.find((one) => one.status === "Unknown" && OWNERS.some(({ type }) => one.type === type));
  return unfinished === undefined
    ? null
    : wait(`The parts of the first boot to finish; ${unfinished.message}`.slice(0, 300));
}

/**
 * For a reimage or reinstall, sets the node's status to `active` in the transaction that stores the stage's verdict. The node of an onboarding
 * becomes `active` only after the stage `check_hardware`; a reimage or reinstall checks the hardware at its end, while its cordon keeps new work off
 * the node.
 */
async function enlist(context: ProvisionContext): Promise<Done<ProvisionState>> {
  const { nodeId, generation } = provisioningOf(context);
  const host = context.state.deploy_ip_addresses?.[0];
  // If the profile requires no hardware sync, no earlier stage has deleted the host's user-data, so `wait_for_agent_enrollment` deletes it.
  await context.services.secrets.remove(SECRET_PATHS.userData(nodeId));
  return {
    kind: "done",
    message: "The agent is connected and healthy",
    details: { node_id: nodeId, generation, host: host ?? null },
    commit: async (tx) => {
      if (context.operation !== "onboarding") await activateNode(tx, context);
      if (host !== undefined) await setNodeHost(tx, nodeId, host);
    },
  };
}

const timeoutFailure = (context: ProvisionContext): Promise<Failure> =>
  agentAbsent(context, {
    evidence: {
      timeout_seconds: context.profile.agentEnrollmentTimeoutSeconds,
      hostname: context.host.hostname,
      maas_system_id: context.state.maas_system_id ?? null,
    },
    otherwise: (message, evidence) =>
      failure("agent_enrollment_failure", "enrollment_timeout", `${message} Then resume.`, evidence),
  });

export const waitForAgentEnrollment: ProvisionStage<"wait_for_agent_enrollment"> = {
  name: "wait_for_agent_enrollment",
  title: "Wait until the agent is connected and healthy",
  reentry: { rule: "observe_first", observe: look },
  timeout: { seconds: (context) => context.profile.agentEnrollmentTimeoutSeconds, failure: timeoutFailure },
  retry: WAIT_RETRY,
  run: look,
};
