import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";

/**
 * True for the modes after which the node is in service again. A mode that returns its node to service only cordons the node, because no transition
 * leads back from `draining` to `active` (decision N1).
 */
export const KEEPS_STATUS: Readonly<Record<DecommissionMode, boolean>> = {
  drain: false,
  release: false,
  remove: false,
  soft_reset: true,
  reimage: true,
  storage_cleanup: true,
  full_decommission: false,
};

/** The statuses of a node whose host has an installed system that a turnover can clean. */
const CLEANABLE: readonly NodeStatus[] = ["active", "offline", "quarantined"];
export const isCleanable = (status: NodeStatus): boolean => CLEANABLE.includes(status);

/** The statuses that a node has while a full decommission cleans its host. */
const CLEANED_OUT: readonly NodeStatus[] = ["draining", "retired"];
/** True if a stage of the mode may clean the host of a node with this status. */
export const mayClean = (mode: DecommissionMode, status: NodeStatus): boolean =>
  mode === "full_decommission" ? CLEANED_OUT.includes(status) : isCleanable(status);

/** True if a node with this status has lost the system that the mode would drain: a reimage makes its node `enrolling` before the release. */
export const hasLostSystem = (mode: DecommissionMode, status: NodeStatus): boolean =>
  mode === "reimage" && status === "enrolling";
