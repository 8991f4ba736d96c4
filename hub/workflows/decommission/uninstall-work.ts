import { type Failure, failure } from "../../../shared/failures.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { readObservedMachine } from "../../db/queries/maas-machines.ts";
import { isHostReleased } from "../../db/queries/machine-releases.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { AgentWork } from "./agent-work.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/** An uninstall task's deadline is `UNINSTALL_MARGIN_SECONDS` after the wait for an absent agent, so that the hub can repeat a lost delivery. */
const UNINSTALL_MARGIN_SECONDS = 900;

export const uninstallSeconds = ({ input }: DecommissionContext): number =>
  input.agent_wait_seconds + UNINSTALL_MARGIN_SECONDS;

/** Warns that a remove leaves the machine deployed in MAAS, because only a release gives the machine back. */
export async function staysDeployed(
  db: Db | Tx,
  node: Pick<Node, "id" | "hostname" | "generation" | "siteId">,
  maasSystemId: string | null,
): Promise<string | null> {
  if (maasSystemId === null || (await isHostReleased(db, node))) return null;
  const seen = node.siteId === null ? null : await readObservedMachine(db, node.siteId, maasSystemId);
  return seen !== null && (seen.absent || seen.status !== MAAS_STATUS.deployed)
    ? null
    : machineStays(node, maasSystemId);
}

const machineStays = (node: Pick<Node, "id" | "hostname">, maasSystemId: string): string =>
  `Machine ${maasSystemId} of ${node.hostname} stays deployed in MAAS, and the host cannot be onboarded again before the machine is released. To release it, run release-node ${node.id} once the node is removed.`;

export const UNINSTALL: AgentWork<"node.uninstall"> = {
  type: "node.uninstall",
  undoneBy: null,
  input: (context) => ({ reason: context.decommission.reason }),
  workSeconds: () => UNINSTALL_MARGIN_SECONDS,
  isAskedFor: () => true,
  // The agent removes nothing before the hub has accepted the agent's result, so the hub may deliver a lost uninstall task once more.
  failed: (context, task, evidence): Failure =>
    failure(
      "upstream_transient",
      "uninstall_failed",
      `The agent of ${context.node.hostname} was not uninstalled: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: () => "The agent to confirm that it can be uninstalled",
};
