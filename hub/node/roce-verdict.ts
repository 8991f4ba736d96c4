import { CONDITION_TYPES } from "../../shared/condition-types.ts";
import type { Inventory } from "../../shared/inventory.ts";
import type { RoceOfNode } from "../db/queries/node-roce.ts";
import { type HardwareVerdict, UNREADABLE } from "./hardware-verdict.ts";

type Seen = Pick<Inventory, "unread"> & {
  readonly interfaces: readonly Pick<Inventory["interfaces"][number], "name" | "ipv4">[];
};

/** A message of the condition `network.addresses` names at most `NAMED` addresses, and gives the number of all further ones. */
const NAMED = 16;
const MISSING_BUT_ALLOWED = CONDITION_TYPES["network.addresses"].tolerates;

/**
 * Compares the addresses of a host's interfaces with the RoCE addresses of its last deploy (decision H3). Returns null if Muster set no RoCE address,
 * or if no inventory of the node's generation has ever shown an IPv4 address: the agent of such a host reached the hub by an address that no
 * inventory shows. `known` is true if an earlier inventory has shown addresses.
 */
export function compareAddresses(
  { interfaces, unread }: Seen,
  { links, required }: RoceOfNode,
  known: boolean,
): HardwareVerdict | null {
  if (links.length === 0) return null;
  const bad = (reason: string): string => (required ? reason : MISSING_BUT_ALLOWED);
  if (unread?.includes("interfaces")) {
    const message = "The agent could not read the host's interfaces. It sends its inventory again within minutes.";
    return { status: "Unknown", reason: bad(UNREADABLE), message };
  }
  if (!known && interfaces.every(({ ipv4 }) => ipv4.length === 0)) return null;
  const faults = links.flatMap(({ interface: name, ipAddress }) => {
    const has = interfaces.filter(({ ipv4 }) => ipv4.includes(ipAddress)).map((one) => one.name);
    if (has.includes(name)) return [];
    return [has.length === 0 ? `${name} lacks ${ipAddress}` : `${has[0]} has ${ipAddress} instead of ${name}`];
  });
  const message = `The host has ${links.length - faults.length} of ${links.length} RoCE addresses on their interfaces.`;
  if (faults.length === 0) return { status: "True", reason: "AllOnHost", message };
  const more = faults.length > NAMED ? `; and ${faults.length - NAMED} more` : "";
  return {
    status: "False",
    reason: bad("AddressesMissing"),
    message: `${message} ${faults.slice(0, NAMED).join("; ")}${more}.`.slice(0, 1000),
  };
}
