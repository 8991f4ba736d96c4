import { failure } from "../../../../shared/failures.ts";
import { revokeEnrollmentTokens } from "../../../db/queries/enrollment-tokens.ts";
import { revokeCertificates } from "../../../db/queries/node-certificates.ts";
import { bindNodeToMachine } from "../../../db/queries/node-machines.ts";
import { deleteNodeThatNeverEnrolled, lockNode, nextGeneration } from "../../../db/queries/nodes.ts";
import type { Tx } from "../../../db/tx.ts";
import { createNode } from "../../../node/create-node.ts";
import { issueEnrollmentToken } from "../../../node/enrollment-tokens.ts";
import { moveNode } from "../../../node/move-node.ts";
import { SECRET_PATHS } from "../../../secrets/port.ts";
import type { CompensationCause } from "../../engine/stage.ts";
import { inFencedTx, UPSTREAM_RETRY } from "../../services.ts";
import { StageFailure } from "../../stage-failure.ts";
import { type OnboardContext, type OnboardStage, profileTimeout, systemIdOf } from "../context.ts";
import { renderUserData } from "../first-boot.ts";
import { freshMachine, judgeMachine, waitForMachine } from "../machine.ts";
import { stepBackToReady } from "../release.ts";
import { tellRoce } from "../roce-condition.ts";
import { mustBeNoOtherNode } from "../take-machine.ts";

const OWNER = "onboarding";

/**
 * Node, token and user-data of one provisioning attempt. Token and secret cannot be written at once, so each run makes new ones: the token
 * of a run that was cut short was revoked by the next, and the deploy compares the user-data's hash with the record before it hands it out.
 */
export const renderCloudInit: OnboardStage<"render_cloud_init"> = {
  name: "render_cloud_init",
  title: "Create the node, issue its enrollment token and render its first boot",
  reentry: {
    rule: "observe_first",
    async observe(context) {
      const machine = await freshMachine(context);
      const verdict = await judgeMachine("render_cloud_init", context, machine);
      switch (verdict.kind) {
        // Rendering anew would revoke the token that the deployed host carries.
        case "adopt":
          return { kind: "skipped", message: `The machine is ${machine.statusName} by this onboarding already` };
        case "failed":
          return verdict;
        case "wait":
          return waitForMachine(context, `MAAS to finish '${machine.statusName}'`);
        default:
          return { kind: "not_started" };
      }
    },
  },
  timeout: profileTimeout(
    "configureTimeoutSeconds",
    "upstream_transient",
    "secret_store_unavailable",
    "Rendering the first boot",
  ),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const machine = await freshMachine(context);
    // A failed deploy of ours that nothing took back, e.g. because MAAS was away: without its intent the machine would be nobody's.
    if ((await judgeMachine("render_cloud_init", context, machine)).kind === "deploy_failed") {
      const step = await stepBackToReady("compensation", context, "the deploy failed");
      if (step.kind !== "ready") return step;
    }
    const { nodeId } = context.onboarding;
    const { generation, token } = await inFencedTx(context, (tx) => openAttempt(tx, context, machine.macAddresses));
    const userData = await renderUserData(context, { nodeId, generation, token });
    await context.services.secrets.write(SECRET_PATHS.userData(nodeId), { user_data: userData.base64.reveal() });
    return {
      kind: "done",
      message: `Rendered attempt ${generation} in ${userData.parts.length} parts`,
      patch: {
        node_id: nodeId,
        generation,
        user_data_sha256: userData.sha256,
        deploy_intent: null,
        deploy_started: null,
        awaits_deploy_place: false,
        deploy_failure: null,
        deployed_at: null,
        last_sync_at_deploy: null,
        reseed_task_id: null,
        token_refreshes: 0,
      },
      details: { node_id: nodeId, generation, parts: userData.parts },
    };
  },
  compensate: undo,
};

async function openAttempt(tx: Tx, context: OnboardContext, macs: readonly string[]) {
  const { onboarding, site, profile, sku } = context;
  const { nodeId } = onboarding;
  await createNode(tx, {
    id: nodeId,
    hostname: onboarding.hostname,
    siteId: site.id,
    sku: sku.id,
    gpusTotal: sku.gpusTotal,
    regionCode: site.regionCode,
    onboardingMode: "maas",
    owner: OWNER,
  });
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "enrolling") throw notEnrolling(context, node?.status ?? null);
  const maasSystemId = systemIdOf(context);
  await mustBeNoOtherNode(tx, context, { systemId: maasSystemId, bmc: onboarding.ipmiIp });
  await bindNodeToMachine(tx, { nodeId, siteId: site.id, maasSystemId, ipmiIp: onboarding.ipmiIp });
  const generation = await nextGeneration(tx, nodeId);
  await tellRoce(tx, context, { id: nodeId, generation });
  const { token } = await issueEnrollmentToken(tx, {
    nodeId,
    workflowId: context.workflowId,
    generation,
    maasSystemId,
    boundMacs: macs.map((mac) => mac.toLowerCase()),
    ttlSeconds: profile.enrollmentTokenTtlSeconds,
  });
  return { generation, token };
}

/** Somebody moved the node meanwhile: it gets no new identity while it is what only a person may end. */
function notEnrolling({ onboarding }: OnboardContext, actual: string | null): StageFailure {
  const message = `Node ${onboarding.hostname} is ${actual ?? "gone"} instead of enrolling, so its host is not deployed. Cancel the onboarding; once the node is removed, start a new one.`;
  const evidence = { node_id: onboarding.nodeId, node_status: actual };
  return new StageFailure(failure("state_ambiguity", "node_state_conflict", message, evidence));
}

/**
 * After a failed deploy the token dies and the node stays for the next try. Whoever cancels or begins again ends the attempt for good: nothing
 * that the host carries lets its agent in any more, and a node that never enrolled is taken back. One that did enroll keeps its record: the
 * host's next onboarding takes it up, but while MAAS still has the host deployed it is quarantined, so that a person decides (lifecycle 4.6).
 */
async function undo(context: OnboardContext, cause: CompensationCause) {
  const { nodeId } = context.onboarding;
  const deployed = typeof context.state.deployed_at === "string";
  if (deployed && cause === "failure") {
    return { kind: "skipped", message: "The host is deployed; its node is left alone" } as const;
  }
  await context.services.secrets.remove(SECRET_PATHS.userData(nodeId));
  return {
    kind: "done",
    message:
      cause === "failure" ? "Token and user-data are void" : "Token, user-data and the agent's identity are void",
    patch: { user_data_sha256: null },
    commit: async (tx: Tx) => {
      if (cause === "failure") await revokeEnrollmentTokens(tx, nodeId);
      else await endIdentity(tx, context, deployed && cause === "cancel");
    },
  } as const;
}

async function endIdentity(tx: Tx, { onboarding }: OnboardContext, staysDeployed: boolean): Promise<void> {
  const { nodeId } = onboarding;
  // Before its token, as an enrollment does: either the agent has enrolled by now, or it cannot any more.
  await lockNode(tx, nodeId);
  await revokeEnrollmentTokens(tx, nodeId);
  if (await deleteNodeThatNeverEnrolled(tx, nodeId)) return;
  await revokeCertificates(tx, nodeId, "all", "the onboarding was given up");
  if (!staysDeployed) return;
  const why = "The onboarding was cancelled with the host deployed. Drain and remove the node, and release its machine";
  await moveNode(tx, nodeId, { from: "enrolling", to: "quarantined", owner: "onboarding" }, why);
}
