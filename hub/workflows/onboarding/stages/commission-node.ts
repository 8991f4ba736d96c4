import { MAAS_STATUS } from "../../../../shared/maas-status.ts";
import { MaasError } from "../../../maas/port.ts";
import type { Observation } from "../../engine/stage.ts";
import { maasOf, mustStillHold, profileTimeout, systemIdOf } from "../../provisioning/context.ts";
import { freshMachine, judgeMachine, waitForMachine } from "../../provisioning/machine.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import type { OnboardContext, OnboardStage } from "../context.ts";
import type { OnboardState } from "../onboard-state.ts";
import { powerOf } from "../power-login.ts";

/**
 * Commissions a New machine directly, because MAAS's `accept` would start the commissioning with options of its own (maas 2.4). The stage
 * `commission_node` observes first, so that it adopts a commissioning that an unanswered call started. If a machine has failed its hardware tests,
 * `commission_node` commissions and tests the machine once more. Before `commission_node` tells MAAS to ignore failed tests, the stage records that
 * the machine must be tested once more. MAAS shows a machine whose failed tests it ignores as Ready. Without the record `commission_again`, the next
 * run would believe that an operator had set the machine's status to Ready.
 */
export const commissionNode: OnboardStage<"commission_node"> = {
  name: "commission_node",
  title: "Set name and BMC login in MAAS and start commissioning",
  reentry: {
    rule: "observe_first",
    observe,
  },
  timeout: profileTimeout(
    "configureTimeoutSeconds",
    "upstream_transient",
    "maas_timeout",
    "Starting the commissioning",
  ),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const maas = await maasOf(context);
    const systemId = systemIdOf(context);
    const power = await powerOf(context);
    const named = await maas.updateMachine(systemId, { hostname: context.onboarding.hostname, power });
    if (named.status === MAAS_STATUS.ready && context.state.commission_again !== true)
      return { kind: "skipped", message: "The machine is Ready already; its name was set" };
    // MAAS would commission even a Ready machine, so only the check of the fence stops a run that has lost its lease.
    await mustStillHold(context);
    try {
      // MAAS does not commission a machine whose last tests failed, so `commission_node` first overrides the result of the tests. After a new
      // commissioning, only the results of the new tests count for the machine's status (maas 2.5).
      if (named.status === MAAS_STATUS.failed_testing) await maas.overrideFailedTesting(systemId);
      const machine = await maas.commission(systemId, {
        commissioning: context.profile.commissioningScripts,
        testing: context.profile.testingScripts,
      });
      return {
        kind: "done",
        message: context.state.commission_again === true ? "Commissioning started again" : "Commissioning started",
        details: seen(context, machine.statusName),
        patch: AGAIN_DONE,
      };
    } catch (error) {
      // A conflict means that the machine's status has changed since the observation, for example by an earlier call whose answer was lost. After a
      // state conflict in MAAS, a new observation of the machine decides what the stage does.
      if (!(error instanceof MaasError) || error.code !== "state_conflict") throw error;
      const now = await observe(context);
      if (now.kind === "not_started") throw error;
      return now;
    }
  },
};

const AGAIN_DONE = { commission_again: null } as const;

async function observe(context: OnboardContext): Promise<Observation<OnboardState>> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine("commission_node", context, machine);
  switch (verdict.kind) {
    case "failed":
      return verdict;
    case "wait":
      return waitForMachine(context, `MAAS to finish '${machine.statusName}'`);
    case "adopt":
      return {
        kind: "skipped",
        message: `This ${context.operation} has already brought the machine to '${machine.statusName}'`,
      };
    case "act":
      if (machine.status !== MAAS_STATUS.failed_testing || context.state.commission_again === true)
        return { kind: "not_started" };
      return {
        kind: "wait",
        reason: "The hardware tests to start again",
        seconds: 0,
        patch: { commission_again: true },
      };
    case "go_on":
      if (machine.status === MAAS_STATUS.ready && context.state.commission_again === true)
        return { kind: "not_started" };
      if (machine.status === MAAS_STATUS.ready && machine.hostname !== context.onboarding.hostname)
        return { kind: "not_started" };
      return machine.status === MAAS_STATUS.ready
        ? { kind: "skipped", message: "The machine is Ready already" }
        : { kind: "done", message: `The machine is ${machine.statusName}`, patch: AGAIN_DONE };
    default:
      return { kind: "not_started" };
  }
}

const seen = (context: OnboardContext, status: string) => ({
  maas_system_id: systemIdOf(context),
  last_maas_status: status,
});
