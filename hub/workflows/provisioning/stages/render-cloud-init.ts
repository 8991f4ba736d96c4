import { failure } from "../../../../shared/failures.ts";
import { revokeEnrollmentTokens } from "../../../db/queries/enrollment-tokens.ts";
import { revokeCertificates } from "../../../db/queries/node-certificates.ts";
import { bindNodeToMachine } from "../../../db/queries/node-machines.ts";
import {
  deleteNodeThatNeverEnrolled,
  lockNode,
  nextGeneration,
  takeLocationOfOnboarding,
} from "../../../db/queries/nodes.ts";
import type { Tx } from "../../../db/tx.ts";
import { createNode } from "../../../node/create-node.ts";
import { issueEnrollmentToken } from "../../../node/enrollment-tokens.ts";
import { inheritHealthOverrides } from "../../../node/health-override.ts";
import { moveNode } from "../../../node/move-node.ts";
import { SECRET_PATHS } from "../../../secrets/port.ts";
import type { CompensationCause } from "../../engine/stage.ts";
import { inFencedTx, UPSTREAM_RETRY } from "../../services.ts";
import { StageFailure } from "../../stage-failure.ts";
import { ownerOf, type ProvisionContext, type ProvisionStage, profileTimeout, systemIdOf } from "../context.ts";
import { renderUserData } from "../first-boot.ts";
import { freshMachine, judgeMachine, waitForMachine } from "../machine.ts";
import { stepBackToReady } from "../release.ts";
import { tellRoce } from "../roce-condition.ts";
import { mustBeNoOtherNode } from "../take-machine.ts";

/**
 * Creates the node, the enrollment token and the user-data of one provisioning attempt. One transaction cannot write both the enrollment token, which
 * is in the database, and the user-data, which is in the secret store. Each run of `render_cloud_init` makes a new token and new user-data, and
 * revokes the token of an interrupted run. The stage `deploy_via_maas` compares the user-data with the hash in the workflow's state before it sends
 * the user-data to MAAS.
 */
export const renderCloudInit: ProvisionStage<"render_cloud_init"> = {
  name: "render_cloud_init",
  title: "Create the node, issue its enrollment token and render its first boot",
  reentry: {
    rule: "observe_first",
    async observe(context) {
      const machine = await freshMachine(context);
      const verdict = await judgeMachine("render_cloud_init", context, machine);
      switch (verdict.kind) {
        // If the host is already deployed, a second rendering of its user-data would revoke the enrollment token that the host has.
        case "adopt":
          return {
            kind: "skipped",
            message: `This ${context.operation} has already brought the machine to '${machine.statusName}'`,
          };
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
    // MAAS may not have released the machine of a failed deploy yet, e.g. because MAAS was unavailable. The stage `render_cloud_init` releases the
    // machine of a failed deploy before a new attempt deletes the fact `deploy_intent`. Only the fact `deploy_intent` shows that the workflow, and
    // nobody else, deployed the machine.
    if ((await judgeMachine("render_cloud_init", context, machine)).kind === "deploy_failed") {
      const step = await stepBackToReady("compensation", context, "the deploy failed");
      if (step.kind !== "ready") return step;
    }
    const { nodeId } = context.host;
    const { generation, token } = await inFencedTx(context, (tx) => openAttempt(tx, context, machine.macAddresses));
    const userData = await renderUserData(context, { nodeId, generation, token });
    await context.services.secrets.write(SECRET_PATHS.userData(nodeId), { user_data: userData.base64.reveal() });
    return {
      kind: "done",
      message: `Rendered the user-data of attempt ${generation} in ${userData.parts.length} parts`,
      patch: {
        node_id: nodeId,
        generation,
        user_data_sha256: userData.sha256,
        deploy_intent: null,
        deploy_started: null,
        awaits_deploy_place: false,
        deploy_failure: null,
        deployed_at: null,
        deployed_image: null,
        last_sync_at_deploy: null,
        reseed_task_id: null,
        token_refreshes: 0,
      },
      details: { node_id: nodeId, generation, parts: userData.parts },
    };
  },
  compensate: undo,
};

async function openAttempt(tx: Tx, context: ProvisionContext, macs: readonly string[]) {
  const { host, site, profile, sku } = context;
  const { nodeId } = host;
  await createNode(tx, {
    id: nodeId,
    hostname: host.hostname,
    siteId: site.id,
    sku: sku.id,
    gpusTotal: sku.gpusTotal,
    regionCode: site.regionCode,
    onboardingMode: "maas",
    owner: ownerOf(context),
  });
  await takeLocationOfOnboarding(tx, nodeId, context.workflowId);
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "enrolling") throw notEnrolling(context, node?.status ?? null);
  const maasSystemId = systemIdOf(context);
  await mustBeNoOtherNode(tx, context, { systemId: maasSystemId, bmc: host.ipmiIp });
  await bindNodeToMachine(tx, { nodeId, siteId: site.id, maasSystemId, ipmiIp: host.ipmiIp });
  const macAddresses = macs.map((mac) => mac.toLowerCase());
  await inheritHealthOverrides(tx, { nodeId, siteId: site.id, maasSystemId, macAddresses });
  const generation = await nextGeneration(tx, nodeId);
  await tellRoce(tx, context, { id: nodeId, generation });
  const { token } = await issueEnrollmentToken(tx, {
    nodeId,
    workflowId: context.workflowId,
    generation,
    maasSystemId,
    boundMacs: macAddresses,
    ttlSeconds: profile.enrollmentTokenTtlSeconds,
  });
  return { generation, token };
}

/** A node whose status is not `enrolling` gets no new enrollment token, because a person must first change the status. */
function notEnrolling({ host, operation }: ProvisionContext, actual: string | null): StageFailure {
  const message = `Node ${host.hostname} is ${actual ?? "gone"} instead of enrolling, so its host is not deployed. Cancel the ${operation}; once the node is removed, start a new one.`;
  const evidence = { node_id: host.nodeId, node_status: actual };
  return new StageFailure(failure("state_ambiguity", "node_state_conflict", message, evidence));
}

/**
 * After a failed deploy the hub revokes the enrollment token and keeps the node for the next attempt. After a cancel or a clean restart, the hub also
 * revokes the host's certificates. After a cancel or a clean restart, the hub deletes a node that never enrolled. A node that has enrolled keeps its
 * record for the host's next onboarding. If MAAS still has the host deployed after a cancel, the hub quarantines the node, so that a person decides
 * (lifecycle 4.6).
 */
async function undo(context: ProvisionContext, cause: CompensationCause) {
  const { nodeId } = context.host;
  const deployed = typeof context.state.deployed_at === "string";
  if (deployed && cause === "failure") {
    return { kind: "skipped", message: "The host stays deployed, so its node does not change" } as const;
  }
  await context.services.secrets.remove(SECRET_PATHS.userData(nodeId));
  return {
    kind: "done",
    message:
      cause === "failure" ? "Token and user-data no longer count" : "Token, user-data and certificates no longer count",
    patch: { user_data_sha256: null },
    commit: async (tx: Tx) => {
      if (cause === "failure") await revokeEnrollmentTokens(tx, nodeId);
      else await endIdentity(tx, context, deployed && cause === "cancel");
    },
  } as const;
}

async function endIdentity(tx: Tx, { host, operation }: ProvisionContext, staysDeployed: boolean): Promise<void> {
  const { nodeId } = host;
  // The transaction that revokes a node's enrollment tokens locks the node before the tokens, in the same order as an enrollment. Once the node and
  // the node's tokens are locked, the agent has either enrolled already or cannot enroll any more.
  await lockNode(tx, nodeId);
  await revokeEnrollmentTokens(tx, nodeId);
  if (await deleteNodeThatNeverEnrolled(tx, nodeId)) return;
  await revokeCertificates(tx, nodeId, "all", `the ${operation} was given up`);
  if (!staysDeployed) return;
  const why = `The ${operation} was cancelled with the host deployed. Drain and remove the node, and release its machine`;
  await moveNode(tx, nodeId, { from: "enrolling", to: "quarantined", owner: ownerOf({ operation }) }, why);
}
