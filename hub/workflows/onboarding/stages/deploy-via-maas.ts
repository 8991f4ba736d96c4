import { type Failure, failure } from "../../../../shared/failures.ts";
import { MAAS_STATUS } from "../../../../shared/maas-status.ts";
import { Secret } from "../../../../shared/secret.ts";
import type { OnboardingStage } from "../../../../shared/workflow-status.ts";
import { deploySlotKey, releaseDeploySlot, takeDeploySlot } from "../../../db/queries/deploy-slots.ts";
import { MaasError } from "../../../maas/port.ts";
import { SECRET_PATHS } from "../../../secrets/port.ts";
import type { Compensation, CompensationCause, Observation, Outcome } from "../../engine/stage.ts";
import { machineEvidence } from "../../machine/verdict-table.ts";
import { inFencedTx, UNHEARD_CALL_SECONDS, UPSTREAM_RETRY } from "../../services.ts";
import {
  maasOf,
  mustStillHold,
  type OnboardContext,
  type OnboardStage,
  profileTimeout,
  provisioningOf,
  systemIdOf,
} from "../context.ts";
import { deployedSeries } from "../distro-series.ts";
import { sha256Of } from "../first-boot.ts";
import { leftDeployed, leftWithOther } from "../left-machine.ts";
import { freshMachine, isOurs, judgeMachine, waitForMachine } from "../machine.ts";
import type { OnboardState } from "../onboard-state.ts";
import { stepBackToReady } from "../release.ts";

/**
 * Never deploys blindly (lifecycle 4.10). The intent is committed before the call is made, so that a run whose answer nobody heard finds
 * a deploying machine and knows it for its own; without the intent the same sight would be somebody else's work. So is in whose name it is
 * made: a token may be rotated to another user's at any time (lifecycle 3.5).
 */
export const deployViaMaas: OnboardStage<"deploy_via_maas"> = {
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

/** The deploy's own time begins when it has its place: whoever is before it may take all of theirs. */
function timeoutSeconds(context: OnboardContext): number {
  const { profile, state } = context;
  const own = DEPLOY_TIMEOUT.seconds(context);
  const placed = state.deploy_intent !== null && state.deploy_intent === state.generation;
  return placed ? own : own * (1 + Math.ceil(profile.batchMaxParallel / profile.deployMaxParallel));
}

function timeoutFailure(context: OnboardContext): Failure {
  const { profile, state, onboarding } = context;
  if (state.awaits_deploy_place !== true) return DEPLOY_TIMEOUT.failure(context);
  const seconds = timeoutSeconds(context);
  const message = `${onboarding.hostname} waited ${seconds} s for one of the ${profile.deployMaxParallel} places to deploy of profile ${profile.name}. Look at the onboardings that hold them, then retry.`;
  return failure("upstream_transient", "deploy_place_timeout", message, {
    timeout_seconds: seconds,
    deploy_max_parallel: profile.deployMaxParallel,
    maas_system_id: state.maas_system_id ?? null,
  });
}

async function observe(context: OnboardContext): Promise<Observation<OnboardState>> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine("deploy_via_maas", context, machine);
  switch (verdict.kind) {
    case "failed":
      return verdict;
    case "adopt":
      return {
        kind: "done",
        message: `The machine is ${machine.statusName} by this onboarding`,
        patch: { deploy_started: context.state.deploy_intent ?? null },
      };
    case "deploy_failed": {
      const message = `The deploy of ${context.onboarding.hostname} ended as '${machine.statusName}': ${machine.errorDescription || machine.statusMessage}`;
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

async function run(context: OnboardContext): Promise<Outcome<OnboardState>> {
  const { generation } = provisioningOf(context);
  if (context.state.deploy_intent !== generation) return prepare(context, generation);
  const userDataBase64 = await readUserData(context);
  if (userDataBase64 === null) {
    return {
      kind: "back",
      to: "render_cloud_init" satisfies OnboardingStage,
      message: "The stored first boot is not the recorded one; rendering anew",
    };
  }
  const maas = await maasOf(context);
  const { username } = await maas.whoami();
  if (username !== context.state.maas_username)
    return {
      kind: "back",
      to: "deploy_via_maas" satisfies OnboardingStage,
      message: `The site's token is ${username}'s now, who will own the machine`,
      patch: { maas_username: username },
    };
  await mustStillHold(context);
  try {
    await maas.deploy(systemIdOf(context), {
      userDataBase64,
      distroSeries: deployedSeries(context.profile.distroSeries),
      // Not sticky in MAAS: every deploy says it again.
      enableHwSync: context.profile.requireHwSync,
      comment: `muster onboarding ${context.workflowId}`,
    });
  } catch (error) {
    return afterError(context, error);
  }
  return { kind: "done", message: "Deploy started", patch: { deploy_started: generation } };
}

/** Takes a place among the profile's parallel deploys and commits the intent; the stage, and with it its time, then begins anew. */
async function prepare(context: OnboardContext, generation: number): Promise<Outcome<OnboardState>> {
  const { profile, workflowId } = context;
  const placed = await inFencedTx(context, (tx) =>
    takeDeploySlot(tx, workflowId, profile.id, profile.deployMaxParallel),
  );
  if (!placed) {
    const reason = `A free place: ${profile.deployMaxParallel} hosts of the profile are deploying`;
    const patch = { awaits_deploy_place: true };
    return { kind: "wait", reason, seconds: 15, on: deploySlotKey(profile.id), patch };
  }
  return {
    kind: "back",
    to: "deploy_via_maas" satisfies OnboardingStage,
    message: "Has a place to deploy and is committed to it",
    patch: { deploy_intent: generation, awaits_deploy_place: false },
  };
}

/** Null when the secret is not what the record says, e.g. written by a run that had lost its lease. */
async function readUserData(context: OnboardContext): Promise<Secret | null> {
  const { nodeId } = provisioningOf(context);
  const { user_data: base64 } = await context.services.secrets.read(SECRET_PATHS.userData(nodeId));
  if (base64 === undefined || sha256Of(base64) !== context.state.user_data_sha256) return null;
  return new Secret(base64);
}

async function afterError(context: OnboardContext, error: unknown): Promise<Outcome<OnboardState>> {
  if (!(error instanceof MaasError) || error.code !== "state_conflict") throw error;
  // The status moved between look and call; only a deploy of ours explains that in a good way.
  const seen = await observe(context);
  if (seen.kind !== "not_started") return seen;
  const message = `MAAS refused the deploy of ${context.onboarding.hostname}: ${error.message}`;
  return {
    kind: "failed",
    failure: failure("state_ambiguity", "machine_owned_by_other", message, { maas_operation: error.operation }),
  };
}

/** However the undoing goes, once it is over the place is somebody else's. */
async function compensate(context: OnboardContext, cause: CompensationCause): Promise<Compensation<OnboardState>> {
  const undone = await undo(context, cause);
  if (undone.kind !== "done" && undone.kind !== "skipped") return undone;
  return { ...undone, commit: (tx) => releaseDeploySlot(tx, context.workflowId) };
}

/** A failed deploy goes back to Ready; a host that came up is left alone unless everything begins again (decision W2). */
async function undo(context: OnboardContext, cause: CompensationCause): Promise<Compensation<OnboardState>> {
  const { deploy_intent: intent, maas_system_id: systemId, deployed_at: deployedAt } = context.state;
  if (intent === null || intent === undefined || typeof systemId !== "string") {
    return { kind: "skipped", message: "Nothing was deployed" };
  }
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine === null) return { kind: "skipped", message: "The machine is not in MAAS any more" };
  if (machine.owner !== null && !(await isOurs(context, machine))) {
    return {
      kind: "skipped",
      message: `The machine belongs to ${machine.owner} now; it is left alone`,
      leaves: leftWithOther(context, machine),
    };
  }
  if (machine.status === MAAS_STATUS.deployed && typeof deployedAt === "string" && cause !== "restart") {
    return {
      kind: "skipped",
      message: "The host is deployed; it is left alone for investigation",
      leaves: leftDeployed(context, machine),
    };
  }
  const step = await stepBackToReady(
    "compensation",
    context,
    cause === "failure" ? "the deploy failed" : `${cause} by an operator`,
  );
  if (step.kind === "failed") return step;
  // A machine that had to be stopped is what the call did.
  if (step.kind === "wait") return { ...step, patch: { ...step.patch, deploy_started: intent } };
  const unheard = context.state.deploy_started !== intent;
  if (unheard && context.now.getTime() - context.enteredAt.getTime() < UNHEARD_CALL_SECONDS * 1000) {
    return waitForMachine(context, "A deploy call whose answer was not heard to show in MAAS, or not");
  }
  return {
    kind: "done",
    message: "The machine is released back to Ready",
    patch: { deploy_intent: null, deploy_started: null },
  };
}
