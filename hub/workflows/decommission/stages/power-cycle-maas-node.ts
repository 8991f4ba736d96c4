import { type Failure, failure } from "../../../../shared/failures.ts";
import { readMaasSystemId } from "../../../db/queries/decommissions.ts";
import { lockNode } from "../../../db/queries/nodes.ts";
import type { Node } from "../../../db/schema/index.ts";
import type { MaasMachine } from "../../../maas/port.ts";
import type { Compensation, Observation, Outcome, Wait } from "../../engine/stage.ts";
import { inFencedTx, WAIT_RETRY } from "../../services.ts";
import { StageFailure } from "../../stage-failure.ts";
import { askBmc } from "../bmc-power.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { mayClean } from "../keeps-status.ts";
import { mustHaveOwnBmc } from "../own-bmc.ts";
import { freshMachine, maasOf, machineOf, waitForMachine } from "../release-machine.ts";
import { cannotPowerCycle } from "../release-verdicts.ts";

/** A machine stays off for `OFF_SECONDS`, so that its power supplies lose their charge and every GPU starts cold. */
const OFF_SECONDS = 60;
const LOOK_AGAIN_SECONDS = 30;
/** The timeout of the stage `power_cycle_maas_node` for a node without a profile, within which the stage reports that it has nothing to do. */
const NOTHING_SECONDS = 300;

/**
 * Powers the machine off and on by MAAS, if the stage `scrub_gpu` found that the GPUs need it and the profile's `gpu_reset_up_to` allows it (decision
 * C3). The power cycle ends when the agent connects from another boot of the host. After the power cycle, the workflow returns to the stage
 * `scrub_gpu`, because only a new reset shows that the GPUs are well. The stage `power_cycle_maas_node` fails if MAAS has recorded for the machine
 * the BMC of another node's host, or if the machine is not Deployed.
 */
export const powerCycleMaasNode: DecommissionStageOf<"power_cycle_maas_node"> = {
  name: "power_cycle_maas_node",
  title: "Power the machine off and on if its GPUs need it",
  reentry: { rule: "observe_first", observe: look },
  timeout: { seconds: secondsOf, failure: timedOut },
  retry: WAIT_RETRY,
  overrides: { bmc_power_failure: { maxAttempts: 3 } },
  run,
  compensate: leaveOn,
};

/** While the machine is off for a power cycle, a rerun begins with the power cycle, because no agent could carry out the first stages. */
export const rerunAtPowerCycle = (state: Partial<DecommissionState>): string | null =>
  isPoweredOff(state) ? powerCycleMaasNode.name : null;

/** True if Muster has powered the machine off, and the agent has not connected since. */
const isPoweredOff = ({ gpu_power_cycle: cycle, gpu_power_asked: asked }: Partial<DecommissionState>): boolean =>
  cycle !== null && cycle !== undefined && (cycle.off_since !== null || asked === "off");

type Cycle = NonNullable<DecommissionState["gpu_power_cycle"]>;

const hasRebooted = ({ session }: DecommissionContext, { boot_id }: Cycle): boolean =>
  session !== null && session.bootId !== boot_id;

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { gpu_power_cycle: cycle, gpu_power_asked: asked } = context.state;
  if (cycle === null || cycle === undefined) return { kind: "skipped", message: "The GPUs need no power cycle" };
  mustStand(context, context.node, context.boundSystemId);
  if (hasRebooted(context, cycle)) return { kind: "not_started" };
  const power = await askBmc(context);
  if (power === "off") return lookAtOff(context, cycle);
  if (power !== "on") return waitFor(context, "The BMC to say whether the machine is on", power);
  if (cycle.off_since !== null) return waitFor(context, "The agent to connect after the power cycle", power);
  return asked === "off" ? waitFor(context, "MAAS to power the machine off", power) : { kind: "not_started" };
}

function lookAtOff(context: DecommissionContext, cycle: Cycle): Observation<DecommissionState> {
  if (cycle.off_since === null) {
    const wait = waitFor(context, `The machine to stay off for ${OFF_SECONDS} s`, "off", OFF_SECONDS);
    return { ...wait, patch: { ...wait.patch, gpu_power_cycle: { ...cycle, off_since: context.now.toISOString() } } };
  }
  const offSeconds = (context.now.getTime() - Date.parse(cycle.off_since)) / 1_000;
  if (offSeconds < OFF_SECONDS)
    return waitFor(context, `The machine to stay off for ${OFF_SECONDS} s`, "off", Math.ceil(OFF_SECONDS - offSeconds));
  return context.state.gpu_power_asked === "on"
    ? waitFor(context, "MAAS to power the machine on", "off")
    : { kind: "not_started" };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const { gpu_power_cycle: cycle, gpu_power_cycles: cycles } = context.state;
  if (cycle === null || cycle === undefined) return { kind: "skipped", message: "The GPUs need no power cycle" };
  if (hasRebooted(context, cycle))
    return {
      kind: "back",
      to: "scrub_gpu",
      message: "The host has booted again, so the GPUs are reset again",
      patch: { gpu_power_cycle: null, gpu_power_asked: null, gpu_power_cycles: (cycles ?? 0) + 1 },
    };
  const turn = cycle.off_since === null ? "off" : "on";
  const hindrance = await hindranceOf(context, await freshMachine(context));
  if (hindrance !== null) return { kind: "failed", failure: hindrance };
  await mustHaveOwnBmc(context);
  await mustStillStand(context);
  await switchTo(context, turn);
  const wait = waitFor(context, `MAAS to power the machine ${turn}`, turn === "off" ? "on" : "off");
  return { ...wait, patch: { ...wait.patch, gpu_power_asked: turn } };
}

async function switchTo(context: DecommissionContext, power: "on" | "off"): Promise<void> {
  const maas = await maasOf(context);
  const { systemId } = machineOf(context);
  await (power === "off" ? maas.powerOff(systemId) : maas.powerOn(systemId));
}

async function hindranceOf(context: DecommissionContext, machine: MaasMachine): Promise<Failure | null> {
  const { username } = await (await maasOf(context)).whoami();
  return cannotPowerCycle(machine, machine.owner === username);
}

/** Throws `node_state_conflict` if the node is not being cleaned any more, or if it is now bound to another machine. */
function mustStand(
  context: DecommissionContext,
  node: Pick<Node, "status" | "generation"> | null,
  boundSystemId: string | null,
): void {
  const { systemId } = machineOf(context);
  const { mode } = context.decommission;
  const stands = node !== null && mayClean(mode, node.status) && node.generation === context.node.generation;
  if (!stands) throw new StageFailure(stateConflict(context, node?.status ?? null, "power-cycled"));
  if (boundSystemId === systemId) return;
  const message = `Node ${context.node.hostname} is bound to machine ${boundSystemId ?? "none"} now, but the ${mode} was requested for machine ${systemId}. Cancel it and request a new one.`;
  throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message, { maas_system_id: systemId }));
}

/** Checks the node and the fence a last time before a power command. */
const mustStillStand = (context: DecommissionContext): Promise<void> =>
  inFencedTx(context, async (tx) => {
    const node = await lockNode(tx, context.node.id);
    mustStand(context, node, await readMaasSystemId(tx, context.node.id));
  });

/** A cancelled power cycle must not leave the machine off, because its agent could then no longer be reached. */
async function leaveOn(context: DecommissionContext): Promise<Compensation<DecommissionState>> {
  const { gpu_power_cycle: cycle } = context.state;
  const patch = { gpu_power_cycle: null, gpu_power_asked: null };
  if (cycle === null || cycle === undefined || !isPoweredOff(context.state))
    return { kind: "skipped", message: "The machine was not powered off", patch };
  if (hasRebooted(context, cycle)) return { kind: "done", message: "The host has booted again", patch };
  const machine = await freshMachine(context);
  const hindrance = await hindranceOf(context, machine);
  if (hindrance !== null)
    return {
      kind: "done",
      message: "The machine may be off, and was not powered on",
      patch,
      leaves: {
        message:
          `Machine ${machine.hostname} (${machine.systemId}) may be off after a cancelled power cycle: ${hindrance.message}`.slice(
            0,
            512,
          ),
        nextAction: "Look at the machine in MAAS, and power it on if its host is still in use.",
        evidence: { maas_system_id: machine.systemId },
      },
    };
  await mustHaveOwnBmc(context);
  await mustStillStand(context);
  await switchTo(context, "on");
  return { kind: "done", message: "MAAS was asked to power the machine on again", patch };
}

const waitFor = (
  context: DecommissionContext,
  reason: string,
  power: string,
  seconds = LOOK_AGAIN_SECONDS,
): Wait<DecommissionState> => ({
  ...waitForMachine(context, reason),
  seconds,
  patch: { power_state: power.slice(0, 32) },
});

function secondsOf({ profile }: DecommissionContext): number {
  if (profile === null) return NOTHING_SECONDS;
  return profile.powerOffTimeoutSeconds + OFF_SECONDS + profile.agentEnrollmentTimeoutSeconds;
}

function timedOut(context: DecommissionContext): Failure {
  const seconds = secondsOf(context);
  const { systemId } = machineOf(context);
  const power = context.state.power_state ?? null;
  const evidence = {
    timeout_seconds: seconds,
    timeout_knob: "agentEnrollmentTimeoutSeconds",
    maas_system_id: systemId,
    bmc_power_state: power,
  };
  const machine = `Machine ${systemId} of node ${context.node.hostname}`;
  const hasBeenOff = (context.state.gpu_power_cycle?.off_since ?? null) !== null;
  if (hasBeenOff && power === "on")
    return failure(
      "post_deploy_connectivity_failure",
      "agent_unreachable",
      `${machine} was powered off and on for its GPUs, but its agent did not connect within ${seconds} s. Look at the host's console, bring the agent back, then resume.`,
      evidence,
    );
  if (power === "on" || power === "off")
    return failure(
      "bmc_power_failure",
      "power_action_failed",
      `${machine} is still ${power} ${seconds} s after the begin of its power cycle. Check its BMC, then resume.`,
      evidence,
    );
  return failure(
    "bmc_power_failure",
    "power_state_unknown",
    `Within ${seconds} s MAAS could not tell whether ${machine} is on (its answer: '${power ?? "none"}'). Check its BMC, then resume.`,
    evidence,
  );
}
