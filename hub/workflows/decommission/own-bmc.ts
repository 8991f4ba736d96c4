import { type Failure, failure } from "../../../shared/failures.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { otherNodesAtBmc } from "../../db/queries/node-machines.ts";
import type { Db } from "../../db/tx.ts";
import type { MaasPort } from "../../maas/port.ts";
import { normalAddress, sameAddress } from "../../maas/power-address.ts";
import { StageFailure } from "../stage-failure.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { maasOf, machineOf } from "./release-machine.ts";

interface OtherNode {
  readonly id: string;
  readonly hostname: string;
  readonly systemId: string;
}

/**
 * Tells a person what to do about another node that was onboarded with the BMC address of the decommission's machine. The argument `now` is the BMC
 * address of the other node's machine, empty if MAAS knows no address, and undefined if MAAS lacks the machine.
 */
function remedyOf(other: OtherNode, now: string | undefined, address: string): string | null {
  const { hostname, systemId } = other;
  if (now === undefined)
    return `Machine ${systemId} of node ${hostname} is not in MAAS any more. If that host no longer has this BMC address, drain and remove node ${hostname}, then rerun. If it still has the address, correct the power parameters of this machine in MAAS, then rerun`;
  if (now === "")
    return `MAAS knows no BMC address of machine ${systemId} of node ${hostname}. Give both machines their own power parameters in MAAS, then rerun`;
  // If two hosts swapped their BMC addresses, MAAS shows a different address for each of them, although Muster's record still has the old address of
  // the other node.
  return sameAddress(now, address) ? "Correct the machine's power parameters in MAAS, then rerun" : null;
}

export interface AtBmc {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly siteId: SiteId;
  readonly systemId: string;
}

/**
 * Returns a failure if the machine has in MAAS the BMC of another node's host, e.g. because somebody mistyped an address, and null otherwise. With a
 * wrong BMC address, MAAS would read the power of the other host, and switch that host off.
 */
export async function otherHostAtBmc(
  db: Db,
  maas: MaasPort,
  { nodeId, hostname, siteId, systemId }: AtBmc,
): Promise<Failure | null> {
  const address = (await maas.powerAddresses([systemId])).get(systemId) ?? "";
  if (address === "") return null;
  const bare = normalAddress(address).replace(/^\[(.*)\]$/, "$1");
  const others = await otherNodesAtBmc(db, siteId, nodeId, bare);
  if (others.length === 0) return null;
  const now = await maas.powerAddresses(others.map((other) => other.systemId));
  for (const other of others) {
    const remedy = remedyOf(other, now.get(other.systemId), address);
    if (remedy === null) continue;
    const message = `Machine ${systemId} of node ${hostname} has in MAAS the BMC address ${address} of node ${other.hostname} (${other.id}), so MAAS could power off the other host. ${remedy}; or cancel.`;
    const evidence = { maas_system_id: systemId, other_node_id: other.id, bmc_address: address };
    return failure("state_ambiguity", "node_state_conflict", message, evidence);
  }
  return null;
}

/** Throws if the decommission's machine has in MAAS the BMC of another node's host. */
export async function mustHaveOwnBmc(context: DecommissionContext): Promise<void> {
  const { node, decommission, services } = context;
  const about = { nodeId: node.id, hostname: decommission.hostname, ...machineOf(context) };
  const found = await otherHostAtBmc(services.db, await maasOf(context), about);
  if (found !== null) throw new StageFailure(found);
}
