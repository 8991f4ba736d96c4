import { type Failure, failure } from "../../../../shared/failures.ts";
import { MAAS_STATUS } from "../../../../shared/maas-status.ts";
import { Secret } from "../../../../shared/secret.ts";
import type { ProvisioningStage } from "../../../../shared/workflow-status.ts";
import { deploySlots, releaseDeploySlot, takeDeploySlot } from "../../../db/queries/deploy-slots.ts";
import { MaasError } from "../../../maas/port.ts";
import { SECRET_PATHS } from "../../../secrets/port.ts";
import type { Compensation, CompensationCause, Observation, Outcome } from "../../engine/stage.ts";
import { machineEvidence } from "../../machine/verdict-table.ts";
import { inFencedTx, UNHEARD_CALL_SECONDS, UPSTREAM_RETRY } from "../../services.ts";
import {
  maasOf,
  mustStillHold,
  type ProvisionContext,
  type ProvisionStage,
  profileTimeout,
  provisioningOf,
  systemIdOf,
} from "../context.ts";
import { deployedSeries } from "../distro-series.ts";
import { sha256Of } from "../first-boot.ts";
import { leftDeployed, leftWithOther } from "../left-machine.ts";
import { freshMachine, isOurs, judgeMachine, waitForMachine } from "../machine.ts";
import type { ProvisionState } from "../provision-state.ts";
import { stepBackToReady } from "../release.ts";

/**
 * Deploys the machine, and always observes the machine before the deploy call (lifecycle 4.10). Before the deploy call, the hub stores in the
 * workflow's row that the workflow is about to deploy the machine. After a lost answer of MAAS, the next run finds a deploying machine, and knows
 * from the workflow's row who requested the deploy. The workflow's row also holds the name of Muster's MAAS user, which a rotation of the site's
 * token may change (lifecycle 3.5).
 */
export const deployViaMaas: ProvisionStage<"deploy_via_maas"> = {
  name: "deploy_via_maas",
  title: "Start the deploy in MAAS with the rendered first boot",
  reentry: { rule: "observe_first", observe },
  timeout: { seconds: timeoutSeconds, failure: timeoutFailure },
  retry: UPSTREAM_RETRY,
  run,
  compensate,
};

const DEPLOY_TIMEOUT = profileTimeout(
  "deployTimeoutSeconds",
  "deploy_cloud_init_failure",
  "deploy_timeout",
  "Starting the deploy",
);

/**
 * A host that waits until its profile allows another simultaneous deploy gets more time, because each earlier host may use its whole timeout. At most
 * `batch_max_parallel` onboardings of a profile and as many reimages of batches run at once.
 */
function timeoutSeconds(context: ProvisionContext): number {
  const { profile, state } = context;
  const own = DEPLOY_TIMEOUT.seconds(context);
  const placed = state.deploy_intent !== null && state.deploy_intent === state.generation;
  return placed ? own : own * (1 + Math.ceil((2 * profile.batchMaxParallel) / profile.deployMaxParallel));
}

function timeoutFailure(context: ProvisionContext): Failure {
  const { profile, state, host } = context;
  if (state.awaits_deploy_place !== true) return DEPLOY_TIMEOUT.failure(context);
  const seconds = timeoutSeconds(context);
  const message = `${host.hostname} waited ${seconds} s for one of the ${profile.deployMaxParallel} places to deploy of profile ${profile.name}. Look at the workflows that hold these places, then retry.`;
  return failure("upstream_transient", "deploy_place_timeout", message, {
    timeout_seconds: seconds,
    deploy_max_parallel: profile.deployMaxParallel,
    maas_system_id: state.maas_system_id ?? null,
  });
}

async function observe(context: ProvisionContext): Promise<Observation<ProvisionState>> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine("deploy_via_maas", context, machine);
  switch (verdict.kind) {
    case "failed":
      return verdict;
    case "adopt":
      return {
        kind: "done",
        message: `This ${context.operation} has brought the machine to '${machine.statusName}'`,
        patch: { deploy_started: context.state.deploy_intent ?? null },
      };
    case "deploy_failed": {
      const message = `The deploy of ${context.host.hostname} ended as '${machine.statusName}': ${machine.errorDescription || machine.statusMessage}`;
      return {
        kind: "failed",
        failure: failure("deploy_cloud_init_failure", "deploy_failed", message, machineEvidence(machine)),
      };
    }
    case "wait":
      return waitForMachine(context, `MAAS to finish '${machine.statusName}'`);
    default:
      return { kind: "not_started" };
  }
}

async function run(context: ProvisionContext): Promise<Outcome<ProvisionState>> {
  const { generation } = provisioningOf(context);
  if (context.state.deploy_intent !== generation) return prepare(context, generation);
  const userDataBase64 = await readUserData(context);
  if (userDataBase64 === null) {
    return {
      kind: "back",
      to: "render_cloud_init" satisfies ProvisioningStage,
      message: "The stored user-data does not match the record, so it is rendered again",
    };
  }
  const maas = await maasOf(context);
  const { username } = await maas.whoami();
  if (username !== context.state.maas_username)
    return {
      kind: "enter_again",
      message: `The site's MAAS token belongs to user ${username} now, who will own the machine`,
      patch: { maas_username: username },
    };
  await mustStillHold(context);
  try {
    await maas.deploy(systemIdOf(context), {
      userDataBase64,
      distroSeries: deployedSeries(context.profile.distroSeries),
      // MAAS does not remember `enable_hw_sync`, so each deploy call sends the option.
      enableHwSync: context.profile.requireHwSync,
      comment: `muster ${context.operation} ${context.workflowId}`,
    });
  } catch (error) {
    return afterError(context, error);
  }
  return { kind: "done", message: "Deploy started", patch: { deploy_started: generation } };
}

/**
 * Takes one of the places for simultaneous deploys that the profile allows, and commits the intent to deploy. When the host has its place among the
 * profile's simultaneous deploys, the engine enters the stage anew, so that the stage's timeout starts at that moment.
 */
async function prepare(context: ProvisionContext, generation: number): Promise<Outcome<ProvisionState>> {
  const { profile, workflowId } = context;
  const placed = await inFencedTx(context, (tx) =>
    takeDeploySlot(tx, workflowId, profile.id, profile.deployMaxParallel),
  );
  if (!placed) {
    const reason = `A free place to deploy: ${profile.deployMaxParallel} hosts of the profile are deploying`;
    const patch = { awaits_deploy_place: true };
    return { kind: "wait", reason, seconds: 15, on: deploySlots(profile.id), patch };
  }
  return {
    kind: "enter_again",
    message: "The host has a place to deploy; the deploy call follows",
    patch: { deploy_intent: generation, awaits_deploy_place: false },
  };
}

/**
 * Returns the stored user-data, or null if the user-data does not match the hash in the workflow's state. A run that had lost its lease may have
 * written other user-data into the secret store.
 */
async function readUserData(context: ProvisionContext): Promise<Secret | null> {
  const { nodeId } = provisioningOf(context);
  const { user_data: base64 } = await context.services.secrets.read(SECRET_PATHS.userData(nodeId));
  if (base64 === undefined || sha256Of(base64) !== context.state.user_data_sha256) return null;
  return new Secret(base64);
}

async function afterError(context: ProvisionContext, error: unknown): Promise<Outcome<ProvisionState>> {
  if (!(error instanceof MaasError) || error.code !== "state_conflict") throw error;
  // If MAAS answers the deploy call with a conflict, the machine's status has changed since the observation. If the workflow's own deploy call has
  // changed the machine's status, the stage continues in spite of the conflict.
  const seen = await observe(context);
  if (seen.kind !== "not_started") return seen;
  const message = `MAAS refused the deploy of ${context.host.hostname}: ${error.message}`;
  return {
    kind: "failed",
    failure: failure("state_ambiguity", "machine_owned_by_other", message, { maas_operation: error.operation }),
  };
}

/** Frees the host's place among the profile's simultaneous deploys when the compensation of the deploy has ended. */
async function compensate(context: ProvisionContext, cause: CompensationCause): Promise<Compensation<ProvisionState>> {
  const undone = await undo(context, cause);
  if (undone.kind !== "done" && undone.kind !== "skipped") return undone;
  return { ...undone, commit: (tx) => releaseDeploySlot(tx, context.workflowId) };
}

/** The hub releases a deployed host only for the verb `restart_clean` (decision W2). */
async function undo(context: ProvisionContext, cause: CompensationCause): Promise<Compensation<ProvisionState>> {
  const { deploy_intent: intent, maas_system_id: systemId, deployed_at: deployedAt } = context.state;
  if (intent === null || intent === undefined || typeof systemId !== "string") {
    return { kind: "skipped", message: "Nothing was deployed" };
  }
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine === null) return { kind: "skipped", message: "The machine is not in MAAS any more" };
  if (machine.owner !== null && !(await isOurs(context, machine))) {
    return {
      kind: "skipped",
      message: `The machine belongs to ${machine.owner} now, so it was not released`,
      leaves: leftWithOther(context, machine),
    };
  }
  if (machine.status === MAAS_STATUS.deployed && typeof deployedAt === "string" && cause !== "restart") {
    return {
      kind: "skipped",
      message: "The host stays deployed for an investigation",
      leaves: leftDeployed(context, machine),
    };
  }
  const step = await stepBackToReady(
    "compensation",
    context,
    cause === "failure" ? "the deploy failed" : `${cause} by an operator`,
  );
  if (step.kind === "failed") return step;
  // If the machine needs an abort or a release, MAAS has received the deploy call.
  if (step.kind === "wait") return { ...step, patch: { ...step.patch, deploy_started: intent } };
  const unheard = context.state.deploy_started !== intent;
  if (unheard && context.now.getTime() - context.enteredAt.getTime() < UNHEARD_CALL_SECONDS * 1000) {
    return waitForMachine(context, "MAAS to show whether it received a deploy call whose answer was lost");
  }
  return {
    kind: "done",
    message: "The machine is released back to Ready",
    patch: { deploy_intent: null, deploy_started: null },
  };
}
