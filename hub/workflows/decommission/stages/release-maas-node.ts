import { type Failure, failure } from "../../../../shared/failures.ts";
import type { Leftover } from "../../../../shared/leftover.ts";
import { MAAS_STATUS } from "../../../../shared/maas-status.ts";
import { generationReleasedBy, recordMachineReleased } from "../../../db/queries/decommissions.ts";
import { isHostReleased } from "../../../db/queries/machine-releases.ts";
import type { Tx } from "../../../db/tx.ts";
import { MaasError, type MaasErrorCode, type MaasMachine } from "../../../maas/port.ts";
import { enterReimage } from "../../../node/lifecycle.ts";
import type { Compensation, CompensationCause, Observation, Outcome } from "../../engine/stage.ts";
import { machineEvidence } from "../../machine/verdict-table.ts";
import { UNHEARD_CALL_SECONDS, WAIT_RETRY } from "../../services.ts";
import type { DecommissionContext, DecommissionStageOf, DecommissionState } from "../decommission-context.ts";
import { needsEvidence, releaseComment } from "../erase-evidence.ts";
import { AFTER_CANCEL, deploysAnew } from "../keeps-status.ts";
import { fullFacts, leftBy, leftoverOf } from "../left-by-full.ts";
import { observeErase } from "../observe-erase.ts";
import { mustHaveOwnBmc } from "../own-bmc.ts";
import {
  hostIsGone,
  judged,
  maasOf,
  machineOf,
  mustStandForRelease,
  mustStillBeTheHost,
  mustStillStand,
  profileOf,
  RELEASED_BEFORE,
  waitForMachine,
  wasRemoved,
  watchedMachine,
} from "../release-machine.ts";
import { erasedAndGone, goneUnerased } from "../unerased.ts";

const REASON = "MAAS to release the machine";
/**
 * After an error of MAAS with a code in `LOOK_AGAIN`, the stage observes the machine anew, because the machine has changed since the last
 * observation.
 */
const LOOK_AGAIN: readonly MaasErrorCode[] = ["state_conflict", "forbidden", "not_found"];

/**
 * Releases the machine in MAAS and waits until the machine is free (lifecycle 5.4). The stage `release_maas_node` observes the machine and commits
 * its intent before each release call. The stage `release_maas_node` accepts a release that anybody else has requested. The stage `release_maas_node`
 * also waits for a disk erase that nobody requested, because MAAS's own configuration may add an erase.
 */
export const releaseMaasNode: DecommissionStageOf<"release_maas_node"> = {
  name: "release_maas_node",
  title: "Release the machine in MAAS and wait until it is free",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds: (context) => profileOf(context).releaseTimeoutSeconds,
    failure: (context) => {
      const seconds = profileOf(context).releaseTimeoutSeconds;
      return failure(
        "upstream_transient",
        "release_timeout",
        `Releasing the machine of ${context.node.hostname} took longer than the profile allows (${seconds} s). Look at it in MAAS, then resume.`,
        {
          timeout_seconds: seconds,
          timeout_knob: "releaseTimeoutSeconds",
          maas_system_id: machineOf(context).systemId,
        },
      );
    },
  },
  retry: WAIT_RETRY,
  // If MAAS fails to release the machine, the stage asks MAAS up to three times, and then a person must act (lifecycle 5.8).
  overrides: { bmc_power_failure: { maxAttempts: 3 } },
  run,
  compensate,
};

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  if (wasRemoved(context)) return RELEASED_BEFORE;
  mustStandForRelease(context, context.node, context.boundSystemId);
  // If a reimage released the machine of an earlier generation of the node, the reimage has since deployed the host anew.
  const releasedGeneration = generationReleasedBy(context.decommission);
  if (releasedGeneration !== null && releasedGeneration < context.node.generation)
    return { kind: "skipped", message: "The machine was released before, and is deployed again" };
  const machine = await watchedMachine(context, "release_maas_node");
  const gone = hostIsGone(context);
  if (machine === null) return { ...waitForMachine(context, REASON), commit: gone };
  const verdict = await judged("release_maas_node", context, machine);
  switch (verdict.kind) {
    case "released": {
      const free = { machine_free: context.node.generation };
      const plain = `The machine is released: it is ${machine.statusName}`;
      if (context.input.erase === "none")
        return { kind: "done", message: plain, patch: free, commit: erasedAndGone(context) };
      const erase = await observeErase(context, machine);
      if (erase.kind === "done")
        return {
          kind: "done",
          message: erase.message,
          patch: { ...free, erase_reported: free.machine_free, erase_disks: erase.disks },
          commit: erasedAndGone(context),
        };
      if (needsEvidence(context)) return { ...erase, commit: goneUnerased(context, erase.failure.code) };
      return { kind: "done", message: plain, patch: free, commit: gone };
    }
    case "wait":
      return { ...waitForMachine(context, REASON), commit: gone };
    case "release":
      if (machine.status === MAAS_STATUS.deployed && (await isHostReleased(context.services.db, context.node)))
        return { kind: "failed", failure: deployedByOther(context) };
      mustStillBeTheHost(context, machine);
      return { kind: "not_started" };
    case "failed":
      if (!verdict.accepted) return { kind: "failed", failure: verdict.failure };
      return {
        kind: "failed",
        failure: verdict.failure,
        patch: { release_failure_told: true },
        commit: goneUnerased(context, verdict.failure.code),
      };
  }
}

/** A second release of a machine that somebody else has deployed would end that person's work. */
function deployedByOther(context: DecommissionContext): Failure {
  const { systemId } = machineOf(context);
  const message = `Machine ${systemId} of node ${context.node.hostname} was released, and somebody has deployed it again. Find out who; once it is Ready again, rerun; or cancel.`;
  return failure("state_ambiguity", "unexpected_maas_status", message, { maas_system_id: systemId });
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const { node, workflowId, state, decommission } = context;
  if (state.release_intent !== node.generation) {
    const wait = waitForMachine(context, "The release call to MAAS");
    const commit = async (tx: Tx) => {
      if (deploysAnew(decommission.mode)) await enterReimage(tx, node.id, decommission.reason);
    };
    return { ...wait, seconds: 0, patch: { release_intent: node.generation }, commit };
  }
  await mustHaveOwnBmc(context);
  await mustStillStand(context);
  try {
    const comment = releaseComment(workflowId);
    const { erase } = context.input;
    const how = erase === "none" ? { comment } : { comment, erase };
    await (await maasOf(context)).release(machineOf(context).systemId, how);
    return { ...waitForMachine(context, REASON), patch: { release_failure_told: false }, commit: hostIsGone(context) };
  } catch (error) {
    if (!(error instanceof MaasError) || !LOOK_AGAIN.includes(error.code)) throw error;
    const seen = await look(context);
    if (seen.kind === "not_started") throw error;
    return seen;
  }
}

const nodeAfter = ({ node, decommission: { mode } }: DecommissionContext): string =>
  deploysAnew(mode)
    ? `Node ${node.hostname} is quarantined; ${AFTER_CANCEL[mode]}.`
    : `Node ${node.hostname} stays retired and cannot be activated again; remove it.`;

/** A release that MAAS has accepted cannot be undone. As long as MAAS has not accepted the release, the compensation has nothing to undo. */
async function compensate(
  context: DecommissionContext,
  cause: CompensationCause,
): Promise<Compensation<DecommissionState>> {
  if (wasRemoved(context)) return RELEASED_BEFORE;
  const { state, node, decommission } = context;
  const releasedGeneration = generationReleasedBy(decommission);
  if (cause === "restart" && releasedGeneration !== null && releasedGeneration < node.generation)
    return {
      kind: "done",
      message: "The restarted operation releases the machine that it has deployed again",
      commit: (tx) => recordMachineReleased(tx, decommission.decommissionId, null),
    };
  if (cause !== "cancel")
    return { kind: "skipped", message: "The released machine is observed again before anything is done to it" };
  const asked = state.release_intent === node.generation;
  const released = releasedGeneration === node.generation;
  if (!asked && !released)
    return {
      kind: "skipped",
      message: `Nothing was released; the node is ${node.status} as before`,
      ...leftByFull(context, "unknown"),
    };
  const { systemId } = machineOf(context);
  const maas = await maasOf(context);
  const machine = await maas.readMachine(systemId);
  const untouched = machine?.status === MAAS_STATUS.deployed && machine.owner === (await maas.whoami()).username;
  if (!released && untouched) {
    if (context.now.getTime() - context.enteredAt.getTime() < UNHEARD_CALL_SECONDS * 1000)
      return waitForMachine(context, "MAAS to show whether it received a release call whose answer was lost");
    return {
      kind: "done",
      message: `MAAS released nothing; the node is ${node.status} as before`,
      ...leftByFull(context, machine),
    };
  }
  const now = machine === null ? "not in MAAS any more" : `'${machine.statusName}' in MAAS`;
  const removed = node.status === "deleted";
  const then = removed ? "" : ` ${nodeAfter(context)}`;
  const isForTenant = decommission.mode === "reinstall" && !removed;
  const last = isForTenant ? "" : " The host may be onboarded again.";
  const message = `A release cannot be undone: machine ${systemId} is ${now}.${then}${last}`;
  return {
    kind: "skipped",
    message,
    leaves: {
      message,
      nextAction: isForTenant
        ? "Reinstall the instance of the node again, or release the instance, which then has MAAS erase the disks."
        : `${removed ? "" : "Remove the node. "}Once the machine is Ready in MAAS, the host may be onboarded again.`,
      evidence: machine === null ? { maas_system_id: systemId } : machineEvidence(machine),
    },
    ...leftByFull(context, machine, true),
    commit: goneUnerased(context, null),
  };
}

/**
 * Returns what a cancelled full decommission leaves in MAAS for operators; after a cancel, every other mode names the released machine in its own
 * message.
 */
function leftByFull(
  context: DecommissionContext,
  machine: MaasMachine | "unknown" | null,
  released = false,
): { readonly leaves?: Leftover } {
  if (context.decommission.mode !== "full_decommission") return {};
  const { systemId } = machineOf(context);
  const evidence = machine === null || machine === "unknown" ? { maas_system_id: systemId } : machineEvidence(machine);
  const leaves = leftoverOf(leftBy({ ...fullFacts(context, machine), released }), evidence);
  return leaves === null ? {} : { leaves };
}
