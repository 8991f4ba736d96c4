import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";

/**
 * A decommission mode that returns its node to service only cordons the node, because no transition leads from `draining` back to `active` (decision
 * N1).
 */
export const KEEPS_STATUS: Readonly<Record<DecommissionMode, boolean>> = {
  drain: false,
  release: false,
  remove: false,
  soft_reset: true,
  reimage: true,
  storage_cleanup: true,
  full_decommission: false,
  reinstall: true,
};

/** The statuses of a node whose host has an installed system that can be cleaned between two tenants. */
const CLEANABLE: readonly NodeStatus[] = ["active", "offline", "quarantined"];
export const isCleanable = (status: NodeStatus): boolean => CLEANABLE.includes(status);

const CLEANED_OUT: readonly NodeStatus[] = ["draining", "retired"];
export const mayClean = (mode: DecommissionMode, status: NodeStatus): boolean =>
  mode === "full_decommission" ? CLEANED_OUT.includes(status) : isCleanable(status);

/** True for a decommission mode that deploys a new system on the node's host. */
export const deploysAnew = (mode: DecommissionMode): mode is "reimage" | "reinstall" =>
  mode === "reimage" || mode === "reinstall";

/** What an operator does with a node after a reimage or a reinstall was cancelled without a new system. */
export const AFTER_CANCEL = {
  reimage: "reimage it again, or drain and remove it",
  reinstall: "reinstall its instance again, or release the instance",
} as const;

/** True if the host no longer has the system that the decommission would drain, as after a reimage has made its node `enrolling`. */
export const hasLostSystem = (mode: DecommissionMode, status: NodeStatus): boolean =>
  deploysAnew(mode) && status === "enrolling";
