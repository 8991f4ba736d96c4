import type { Failed, Skipped, Wait } from "../engine/stage.ts";
import type { ProvisionContext } from "./context.ts";
import { freshMachine, judgeMachine, waitForMachine } from "./machine.ts";
import type { ProvisionState } from "./provision-state.ts";

/**
 * A stage may change a machine's storage, or the connections of its interfaces to subnets, only while the machine is Ready (lifecycle 4.10).
 * `notEditable` returns null if the stage may change the machine now. If the workflow has already deployed the machine, the stage is skipped, because
 * the machine was configured before the deploy.
 */
export async function notEditable(
  stage: "configure_storage" | "apply_roce_phase2" | "ensure_pxe_interface_auto",
  context: ProvisionContext,
): Promise<Skipped<ProvisionState> | Wait<ProvisionState> | Failed<ProvisionState> | null> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine(stage, context, machine);
  switch (verdict.kind) {
    case "act":
      return null;
    case "failed":
      return verdict;
    case "adopt":
      return {
        kind: "skipped",
        message: `This ${context.operation} has already brought the machine to '${machine.statusName}'`,
      };
    default:
      return waitForMachine(context, `MAAS to finish '${machine.statusName}'`);
  }
}
