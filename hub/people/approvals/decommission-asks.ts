import type { SecondPerson } from "../../../shared/api/approvals.ts";
import type { BatchOperation } from "../../../shared/api/batches.ts";
import type { StorageCleanupCreate } from "../../../shared/api/decommissions.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";

/** A request for a decommission of any mode, for one node or for a batch. */
export type DecommissionAsked = BatchOperation | ({ readonly mode: "storage_cleanup" } & StorageCleanupCreate);

/**
 * True for a mode that takes a host out of the fleet for good. A full decommission does the same as a drain, a release and a remove one after another,
 * so the release and the remove ask as much as the full decommission. A drain asks nothing, because an operator can activate a drained node again: the
 * hub releases no retired node by itself whose profile has the entry `erase` or `full_decommission` (`retirementsOf`).
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
 * When a mode costs a node the data on the disks of its host. `by_option`: if the request cleans local storage; Weka mounts hold no data on the host.
 * `while_held`: while MAAS has not released the machine for the hub. A removed node asks nobody any more, so whoever removes it takes away what protects
 * the disks of its host.
 */
const LOSES_DISKS: Readonly<Record<DecommissionMode, "never" | "by_option" | "while_held" | "always">> = {
  drain: "never",
  // The next deploy of a released machine overwrites its disks, and MAAS erases them at once if the region's setting says so (maas 2.9).
  release: "always",
  remove: "while_held",
  soft_reset: "by_option",
  storage_cleanup: "by_option",
  // The new deploy overwrites the disk of the system.
  reimage: "always",
  full_decommission: "always",
  // The tenant's own data is lost at the tenant's own request, as at the end of an allocation, which asks for no second person either (decision N11).
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
 * The entries of `second_person` that a request for a decommission touches. `holdsDisks` says whether a machine of the nodes was not released in MAAS by
 * the hub, so that its disks may hold the data of the node.
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

/** The most names that one sentence for a second person tells. */
const MOST_NAMES = 20;

/** Tells names in their order, and of many names only how many are left out. */
export function someOf(names: readonly string[]): string {
  const told = names.toSorted().slice(0, MOST_NAMES).join(", ");
  return names.length <= MOST_NAMES ? told : `${told} and ${names.length - MOST_NAMES} more`;
}

/** Says in words what the request does to the named nodes, with every option of the request. */
export function wordsOf({ mode, reason, ...options }: DecommissionAsked, nodes: string): string {
  const told = Object.entries(options).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return `${WORDS[mode]} ${nodes} (${[mode, ...told].join(", ")}). Reason: ${reason}`;
}
