import { type Failure, failure } from "../../../../shared/failures.ts";
import { generationReleasedBy } from "../../../db/queries/decommissions.ts";
import type { Observation, Outcome, Wait } from "../../engine/stage.ts";
import { WAIT_RETRY } from "../../services.ts";
import { askBmc } from "../bmc-power.ts";
import type { DecommissionContext, DecommissionStageOf, DecommissionState } from "../decommission-context.ts";
import { deploysAnew } from "../keeps-status.ts";
import { mustHaveOwnBmc } from "../own-bmc.ts";
import {
  freshMachine,
  judged,
  maasOf,
  machineOf,
  mustStandForRelease,
  mustStillStand,
  profileOf,
  RELEASED_BEFORE,
  waitForMachine,
  wasRemoved,
} from "../release-machine.ts";
import { cannotPowerOff } from "../release-verdicts.ts";

/**
 * The stage `power_off_maas_node` asks the BMC only every `LOOK_AGAIN_SECONDS`, because a power query occupies one of MAAS's few slots for slow
 * calls.
 */
const LOOK_AGAIN_SECONDS = 30;

/**
 * Makes sure that the release has powered the machine off (lifecycle 6.4). The stage `power_off_maas_node` asks the BMC through MAAS, because MAAS's
 * own record of the power may be minutes old. The stage `power_off_maas_node` fails if the BMC does not answer `off` before the timeout (lifecycle
 * 5.8). A reimage or reinstall continues after an unknown power state, and the sanitization record of a reimage does not claim that the machine was
 * off. The stage `power_off_maas_node` fails in every mode if MAAS has recorded for the machine the BMC of another node's host, because that BMC
 * answers for the other host.
 */
export const powerOffMaasNode: DecommissionStageOf<"power_off_maas_node"> = {
  name: "power_off_maas_node",
  title: "See that the released machine is off, and power it off where it is not",
  reentry: { rule: "observe_first", observe: look },
  timeout: { seconds: (context) => profileOf(context).powerOffTimeoutSeconds, failure: timedOut },
  retry: WAIT_RETRY,
  overrides: { bmc_power_failure: { maxAttempts: 3 } },
  run,
};

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  if (wasRemoved(context)) return RELEASED_BEFORE;
  const { mode } = context.decommission;
  if (deploysAnew(mode) && generationReleasedBy(context.decommission) !== context.node.generation)
    return { kind: "skipped", message: "The machine was released before, and is deployed again" };
  mustStandForRelease(context, context.node, context.boundSystemId);
  const machine = await freshMachine(context);
  const verdict = await judged("power_off_maas_node", context, machine);
  if (verdict.kind === "failed") return { kind: "failed", failure: verdict.failure };
  if (verdict.kind === "wait") return waitForMachine(context, `MAAS to finish '${machine.statusName}'`);
  await mustHaveOwnBmc(context);
  const power = await askBmc(context);
  if (power === "off") {
    const patch = { power_state: power, seen_off: context.node.generation };
    return { kind: "done", message: "The machine is off", patch };
  }
  if (deploysAnew(mode) && context.deadline.getTime() - context.now.getTime() <= LOOK_AGAIN_SECONDS * 1000)
    return { kind: "skipped", message: "The deploy continues; the BMC did not report in time that the machine is off" };
  if (power !== "on") return waitFor(context, "The BMC to say whether the machine is on", power);
  if (context.state.power_off_asked === true) return waitFor(context, "MAAS to power the machine off", power);
  const hindrance = cannotPowerOff(machine);
  return hindrance === null ? { kind: "not_started" } : { kind: "failed", failure: hindrance };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  await mustHaveOwnBmc(context);
  await mustStillStand(context);
  await (await maasOf(context)).powerOff(machineOf(context).systemId);
  const wait = waitFor(context, "MAAS to power the machine off", "on");
  return { ...wait, patch: { ...wait.patch, power_off_asked: true } };
}

const waitFor = (context: DecommissionContext, reason: string, power: string): Wait<DecommissionState> => ({
  ...waitForMachine(context, reason),
  seconds: LOOK_AGAIN_SECONDS,
  patch: { power_state: power.slice(0, 32) },
});

function timedOut(context: DecommissionContext): Failure {
  const seconds = profileOf(context).powerOffTimeoutSeconds;
  const { systemId } = machineOf(context);
  const power = context.state.power_state ?? null;
  const evidence = {
    timeout_seconds: seconds,
    timeout_knob: "powerOffTimeoutSeconds",
    maas_system_id: systemId,
    bmc_power_state: power,
  };
  const machine = `Machine ${systemId} of node ${context.node.hostname}`;
  return power === "on"
    ? failure(
        "bmc_power_failure",
        "power_action_failed",
        `${machine} is released but still on ${seconds} s later. Check its BMC, then resume.`,
        evidence,
      )
    : failure(
        "bmc_power_failure",
        "power_state_unknown",
        `${machine} is released, but within ${seconds} s MAAS could not tell whether it is off (its answer: '${power ?? "none"}'). Check its BMC, then resume.`,
        evidence,
      );
}
