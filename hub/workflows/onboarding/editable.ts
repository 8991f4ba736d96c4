import type { Failed, Skipped, Wait } from "../engine/stage.ts";
import type { OnboardContext } from "./context.ts";
import { freshMachine, judgeMachine, waitForMachine } from "./machine.ts";
import type { OnboardState } from "./onboard-state.ts";

/**
 * Links and storage are changed only while the machine is Ready (lifecycle 4.10). Null: go ahead. A machine that this onboarding has
 * deployed already was configured before, and is left alone.
 */
export async function notEditable(
  stage: "configure_storage" | "apply_roce_phase2" | "ensure_pxe_interface_auto",
  context: OnboardContext,
): Promise<Skipped<OnboardState> | Wait<OnboardState> | Failed<OnboardState> | null> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine(stage, context, machine);
  switch (verdict.kind) {
    case "act":
      return null;
    case "failed":
      return verdict;
    case "adopt":
      return { kind: "skipped", message: `The machine is ${machine.statusName} by this onboarding already` };
    default:
      return waitForMachine(context, `MAAS to finish '${machine.statusName}'`);
  }
}
