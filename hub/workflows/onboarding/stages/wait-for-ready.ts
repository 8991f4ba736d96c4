import type { Done, Failed, Skipped, Wait } from "../../engine/stage.ts";
import { VERDICTS } from "../../machine/verdict-table.ts";
import { profileTimeout } from "../../provisioning/context.ts";
import { judgeMachine, waitForMachine, watchedMachine } from "../../provisioning/machine.ts";
import { WAIT_RETRY } from "../../services.ts";
import type { OnboardContext, OnboardStage } from "../context.ts";
import type { OnboardState } from "../onboard-state.ts";

type Seen = Done<OnboardState> | Skipped<OnboardState> | Wait<OnboardState> | Failed<OnboardState>;

const stillGoing = (status: number): boolean =>
  status in VERDICTS && VERDICTS[status as keyof typeof VERDICTS].ready === "wait";

/** The wait reason of `wait_for_ready` never changes during the stage, because each new wait reason causes an event. */
const REASON = "MAAS to commission and test the machine";

async function look(context: OnboardContext): Promise<Seen> {
  const machine = await watchedMachine(context, (row) => !stillGoing(row.status));
  if (machine === null) return waitForMachine(context, REASON);
  const verdict = await judgeMachine("wait_for_ready", context, machine);
  switch (verdict.kind) {
    case "failed":
      return verdict;
    case "go_on":
      return { kind: "done", message: "The machine is Ready" };
    case "adopt":
      return {
        kind: "skipped",
        message: `This ${context.operation} has already brought the machine to '${machine.statusName}'`,
      };
    default:
      return waitForMachine(context, REASON);
  }
}

export const waitForReady: OnboardStage<"wait_for_ready"> = {
  name: "wait_for_ready",
  title: "Wait until MAAS has commissioned and tested the machine",
  reentry: { rule: "observe_first", observe: look },
  timeout: profileTimeout(
    "commissionTimeoutSeconds",
    "pxe_discovery_failure",
    "commissioning_timeout",
    "Commissioning",
  ),
  retry: WAIT_RETRY,
  // After a failed commissioning, a person must read the results of the commissioning before the onboarding continues (lifecycle 4.6).
  overrides: { pxe_discovery_failure: { retry: "never" }, bmc_power_failure: { retry: "never" } },
  run: look,
};
