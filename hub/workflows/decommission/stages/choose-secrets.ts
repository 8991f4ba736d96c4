import { failure } from "../../../../shared/failures.ts";
import { writeSecrets } from "../../../db/queries/decommissions.ts";
import type { MaasMachine } from "../../../maas/port.ts";
import type { Observation, Outcome } from "../../engine/stage.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import { choose, nameOf } from "../chosen-secrets.ts";
import type { DecommissionContext, DecommissionStageOf, DecommissionState } from "../decommission-context.ts";
import { mustHaveOwnBmc } from "../own-bmc.ts";
import { freshMachine, maasOf, machineOf, mustStandForRelease, profileOf, wasRemoved } from "../release-machine.ts";

async function look({ decommission }: DecommissionContext): Promise<Observation<DecommissionState>> {
  return decommission.secrets === null
    ? { kind: "not_started" }
    : { kind: "done", message: "The secrets that the operation removes were chosen before" };
}

/** By MAAS's present data about the machine, `choose_secrets` decides which BMC logins are the node's. */
async function machineNow(context: DecommissionContext): Promise<MaasMachine | null> {
  // A decommission that began under an older version of Muster may have removed its node before the choice of the secrets.
  if (wasRemoved(context)) return (await maasOf(context)).readMachine(machineOf(context).systemId);
  mustStandForRelease(context, context.node, context.boundSystemId);
  return freshMachine(context);
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const machine = await machineNow(context);
  if (!wasRemoved(context)) await mustHaveOwnBmc(context);
  const secrets = await choose(context, machine);
  const [own, kept] = [secrets.filter(isChosen), secrets.filter((one) => !isChosen(one))];
  const told =
    own.length === 0 ? "The operation has no secret to remove" : `To be removed: ${own.map(nameOf).join(", ")}`;
  const besides = kept.map((one) => `. Kept: ${nameOf(one)}, because ${one.reason}`).join("");
  return {
    kind: "done",
    message: `${told}${besides}`.slice(0, 2_000),
    commit: (tx) => writeSecrets(tx, context.decommission.decommissionId, secrets),
  };
}

const isChosen = ({ outcome }: { readonly outcome: string }): boolean => outcome === "chosen";
const seconds = (context: DecommissionContext): number => profileOf(context).configureTimeoutSeconds;

/**
 * Chooses the secrets that the decommission removes later, before the decommission releases anything of the host. Before the release, MAAS and Muster
 * can still prove which BMC logins belong to the node's machine. The stage `cleanup_secrets` removes a chosen secret only if the secret still has the
 * version that `choose_secrets` recorded.
 */
export const chooseSecrets: DecommissionStageOf<"choose_secrets"> = {
  name: "choose_secrets",
  title: "Choose the node's secrets, which are removed after the node",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "secret_store_timeout",
        `The secrets of node ${context.node.hostname} were not chosen within ${seconds(context)} s, because MAAS or the secret store did not answer.`,
        { node_id: context.node.id, timeout_seconds: seconds(context), timeout_knob: "configureTimeoutSeconds" },
      ),
  },
  retry: UPSTREAM_RETRY,
  run,
};
