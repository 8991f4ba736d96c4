import { failure } from "../../../../shared/failures.ts";
import type { Leftover } from "../../../../shared/leftover.ts";
import { MaasError, type MaasErrorCode } from "../../../maas/port.ts";
import type { Observation, Outcome } from "../../engine/stage.ts";
import { inFencedTx, UPSTREAM_RETRY } from "../../services.ts";
import type { DecommissionContext, DecommissionStageOf, DecommissionState } from "../decommission-context.ts";
import { leftErase, leftoverOf, leftSecrets, unprovenErase } from "../left-by-full.ts";
import { maasOf, machineOf, mustStillBeTheHost, profileOf, waitForMachine } from "../release-machine.ts";
import { cannotDelete } from "../release-verdicts.ts";

/**
 * After an error of MAAS with a code in `LOOK_AGAIN`, the stage observes the machine anew, because the machine has changed since the last
 * observation.
 */
const LOOK_AGAIN: readonly MaasErrorCode[] = ["state_conflict", "forbidden", "not_found"];

function leftAtTheEnd(context: DecommissionContext): { readonly leaves?: Leftover } {
  const { decommission, node } = context;
  const things = [...leftErase(unprovenErase(context)), ...leftSecrets(decommission.secrets ?? [])];
  const leaves = leftoverOf(things, { node_id: node.id, maas_system_id: decommission.maasSystemId });
  return leaves === null ? {} : { leaves };
}

/**
 * The stage `remove_maas_record` reads the machine from MAAS itself, because the hub's stored observation may be older than a deletion or a new use
 * of the machine.
 */
async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const left = leftAtTheEnd(context);
  if (!context.input.remove_maas_record)
    return {
      kind: "skipped",
      message: "The machine stays in MAAS, because the request does not ask to delete it",
      ...left,
    };
  const { systemId } = machineOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine === null) return { kind: "done", message: `Machine ${systemId} is not in MAAS any more`, ...left };
  const hindrance = cannotDelete(machine);
  if (hindrance !== null) return { kind: "failed", failure: hindrance };
  mustStillBeTheHost(context, machine);
  return { kind: "not_started" };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  await inFencedTx(context, async () => undefined);
  try {
    await (await maasOf(context)).deleteMachine(machineOf(context).systemId);
  } catch (error) {
    if (!(error instanceof MaasError) || !LOOK_AGAIN.includes(error.code)) throw error;
    const seen = await look(context);
    if (seen.kind === "not_started") throw error;
    return seen;
  }
  return { ...waitForMachine(context, "MAAS to show that the machine is deleted"), seconds: 0 };
}

const seconds = (context: DecommissionContext): number => profileOf(context).configureTimeoutSeconds;

/**
 * Deletes the machine in MAAS, if the request asks for it (lifecycle 5.4). The decommission holds the machine, so no onboarding can have taken the
 * machine since the release. The stage `remove_maas_record` leaves a machine in MAAS that somebody uses, has renamed or has locked.
 */
export const removeMaasRecord: DecommissionStageOf<"remove_maas_record"> = {
  name: "remove_maas_record",
  title: "Delete the machine in MAAS, if the request asks for it",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "maas_timeout",
        `Machine ${machineOf(context).systemId} of ${context.decommission.hostname} was not deleted in MAAS within ${seconds(context)} s.`,
        {
          timeout_seconds: seconds(context),
          timeout_knob: "configureTimeoutSeconds",
          maas_system_id: machineOf(context).systemId,
        },
      ),
  },
  retry: UPSTREAM_RETRY,
  run,
};
