import type { SecondPerson } from "../../../shared/api/approvals.ts";
import type { BatchOperation } from "../../../shared/api/batches.ts";
import type { StorageCleanupCreate } from "../../../shared/api/decommissions.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";

/** A request for a decommission of any mode, for one node or for a batch. */
export type DecommissionAsked = BatchOperation | ({ readonly mode: "storage_cleanup" } & StorageCleanupCreate);

/**
 * True for a mode that takes a host out of the fleet for good. A full decommission does the same as a drain, a release and a remove one after
 * another, so the release and the remove need a second person just as the full decommission does. A drain needs no second person, because an operator
 * can activate a drained node again. The hub by itself never releases a retired node whose profile has the entry `erase` or `full_decommission`
 * (`retirementsOf`).
 */
export const ENDS_SERVICE: Readonly<Record<DecommissionMode, boolean>> = {
  drain: false,
  release: true,
  remove: true,
  soft_reset: false,
  reimage: false,
  storage_cleanup: false,
  full_decommission: true,
  reinstall: false,
};

const cleansDisks = (storage: "none" | "local" | "weka" | "all"): boolean => storage === "local" || storage === "all";

/**
 * When each mode of a decommission destroys the data on the disks of the node's host. With `by_option`, a decommission destroys the data on the
 * host's disks if the request includes the cleaning of local storage; Weka mounts hold no data on the host. With `while_held`, a decommission counts
 * as destroying the data on the host's disks if the hub has not released the machine in MAAS before the request. After a decommission of the mode
 * `remove`, no profile asks for a second person before the disks of the node's host are erased, so the remove itself needs the second person.
 */
const LOSES_DISKS: Readonly<Record<DecommissionMode, "never" | "by_option" | "while_held" | "always">> = {
  drain: "never",
  // The next deploy of a released machine overwrites its disks, and MAAS erases them at once if the region's setting says so (maas 2.9).
  release: "always",
  remove: "while_held",
  soft_reset: "by_option",
  storage_cleanup: "by_option",
  // The new deploy of a reimage overwrites the disk of the host's system.
  reimage: "always",
  full_decommission: "always",
  // A reinstall loses the tenant's own data at the tenant's own request, like the end of an allocation, and neither asks for a second person
  // (decision N11).
  reinstall: "never",
};

function cleans(request: DecommissionAsked): boolean {
  switch (request.mode) {
    case "storage_cleanup":
      return cleansDisks(request.scope);
    case "soft_reset":
    case "full_decommission":
      return cleansDisks(request.storage_cleanup);
    default:
      return false;
  }
}

function losesDisks(request: DecommissionAsked, holdsDisks: boolean): boolean {
  const loses = LOSES_DISKS[request.mode];
  return loses === "by_option" ? cleans(request) : loses === "while_held" ? holdsDisks : loses === "always";
}

/**
 * Returns the entries of `second_person` in a profile that make this request for a decommission need a second person. `holdsDisks` is true if the hub
 * has not released the machine of at least one of the nodes in MAAS, so that disks may hold the data of a node.
 */
export const touchedBy = (request: DecommissionAsked, holdsDisks: boolean): readonly SecondPerson[] => [
  ...(losesDisks(request, holdsDisks) ? (["erase"] as const) : []),
  ...(ENDS_SERVICE[request.mode] ? (["full_decommission"] as const) : []),
];

const WORDS: Readonly<Record<DecommissionMode, string>> = {
  drain: "Drain",
  release: "Release the machine of",
  remove: "Remove",
  soft_reset: "Clean",
  reimage: "Deploy again",
  storage_cleanup: "Clean the storage of",
  full_decommission: "Take out of the fleet",
  reinstall: "Install anew",
};

/** The largest number of names in one sentence for the second person. */
const MOST_NAMES = 20;

/** Lists names in alphabetical order; after the first `MOST_NAMES` names, the text only says how many more there are. */
export function someOf(names: readonly string[]): string {
  const told = names.toSorted().slice(0, MOST_NAMES).join(", ");
  return names.length <= MOST_NAMES ? told : `${told} and ${names.length - MOST_NAMES} more`;
}

/** Says in words what a request for a decommission does to the named nodes, with every option of the request. */
export function wordsOf({ mode, reason, ...options }: DecommissionAsked, nodes: string): string {
  const told = Object.entries(options).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return `${WORDS[mode]} ${nodes} (${[mode, ...told].join(", ")}). Reason: ${reason}`;
}
