import { releaseDeploySlot } from "../../../db/queries/deploy-slots.ts";
import { hostAddresses } from "../../../maas/host-address.ts";
import type { MaasMachine } from "../../../maas/port.ts";
import type { Done, Observation, Wait } from "../../engine/stage.ts";
import { WAIT_RETRY } from "../../services.ts";
import { type ProvisionContext, type ProvisionStage, profileTimeout } from "../context.ts";
import { freshMachine, judgeMachine, judgeSeen, waitForMachine, watchedMachine } from "../machine.ts";
import type { ProvisionState } from "../provision-state.ts";

async function look(context: ProvisionContext): Promise<Exclude<Observation<ProvisionState>, { kind: "not_started" }>> {
  const late = context.now >= context.deadline;
  const machine = late
    ? await freshMachine(context)
    : await watchedMachine(context, (row) => judgeSeen("wait_for_deployed", context, row).kind !== "wait");
  if (machine === null) return waitForDeploy(context);
  const verdict = await judgeMachine("wait_for_deployed", context, machine);
  switch (verdict.kind) {
    case "failed":
      return verdict;
    case "go_on":
      return deployed(context, machine);
    case "deploy_failed":
      return failed(machine, "failed", `The deploy ended as '${machine.statusName}'`);
    default:
      // The stages `classify_deploy_failure` and `recover_for_datasource_retry` decide what happens after a deploy that exceeds its time.
      return late
        ? failed(machine, "timeout", "The deploy took longer than the profile allows")
        : waitForDeploy(context);
  }
}

const waitForDeploy = (context: ProvisionContext): Wait<ProvisionState> =>
  waitForMachine(context, "MAAS to deploy the machine");

async function deployed(context: ProvisionContext, machine: MaasMachine): Promise<Done<ProvisionState>> {
  const addresses = await addressesOf(context, machine);
  return {
    kind: "done",
    message: "MAAS reports Deployed: the new system has fetched its user-data",
    patch: {
      deployed_at: context.state.deployed_at ?? context.now.toISOString(),
      deployed_image: imageOf(context, machine),
      deploy_failure: null,
      deploy_ip_addresses: addresses,
      // MAAS sets `last_sync` at the end of the deploy, before any hardware sync ran. Only a `last_sync` after the end of the deploy proves a
      // hardware sync (decision M3).
      last_sync_at_deploy: context.state.last_sync_at_deploy ?? (machine.lastSync ?? context.now).toISOString(),
    },
    details: { ip_addresses: addresses.slice(0, 16) },
    commit: (tx) => releaseDeploySlot(tx, context.workflowId),
  };
}

/** Returns the name of the system that MAAS deployed; null if MAAS names no system. */
function imageOf(
  { state }: ProvisionContext,
  { osystem, distroSeries }: MaasMachine,
): ProvisionState["deployed_image"] {
  const { generation } = state;
  if (typeof generation !== "number" || osystem === "" || distroSeries === "") return null;
  return { generation, name: `${osystem}/${distroSeries}`.slice(0, 128) };
}

/** The host's own address is first among the machine's addresses, by the rule that the hub's reconciler of MAAS data also uses (lifecycle 4.3). */
async function addressesOf(context: ProvisionContext, machine: MaasMachine): Promise<string[]> {
  const { ipAddresses, interfaceAddresses } =
    machine.interfaceAddresses.length > 0 ? machine : await freshMachine(context);
  return [...new Set([...hostAddresses(interfaceAddresses, context.site.deploySshIface), ...ipAddresses])];
}

function failed(machine: MaasMachine, reason: "failed" | "timeout", message: string): Done<ProvisionState> {
  return {
    kind: "done",
    message,
    patch: {
      deploy_failure: {
        reason,
        maas_status: machine.status,
        status_message: machine.statusMessage.slice(0, 500),
        error_description: machine.errorDescription.slice(0, 500),
      },
    },
    details: { maas_status: machine.statusName, error_description: machine.errorDescription.slice(0, 500) },
  };
}

export const waitForDeployed: ProvisionStage<"wait_for_deployed"> = {
  name: "wait_for_deployed",
  title: "Wait until MAAS says that the machine is deployed",
  reentry: { rule: "observe_first", observe: look },
  timeout: profileTimeout("deployTimeoutSeconds", "deploy_cloud_init_failure", "deploy_timeout", "The deploy"),
  retry: WAIT_RETRY,
  run: look,
};
