import type { AllocationStatus } from "../../shared/allocation-status.ts";
import type { InstanceStatus } from "../../shared/api/instances.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { Lack } from "../../shared/readiness-policy.ts";
import type { PowerIntent } from "../node/power-intent.ts";

/** The facts that decide what the tenant of an open allocation sees. */
export interface InstanceFacts {
  readonly allocation: Exclude<AllocationStatus, "ended">;
  /** The status of the node; null if the node does not exist any more. */
  readonly node: NodeStatus | null;
  /** Why the node's conditions do not let it take work; empty for a ready node. */
  readonly lacks: readonly Lack[];
  /** True if a health override says that the node is under repair. */
  readonly isRepaired: boolean;
  /** Why the host is switched off or restarts at somebody's request; null if nobody has requested it. */
  readonly power: PowerIntent["kind"] | null;
  /** True if the operation that cleans the node after the tenant has failed. */
  readonly hasFailedTurnover: boolean;
  /** The reinstall that holds the node; null without one. Only operators see why a reinstall failed, because the reason may name other hosts. */
  readonly reinstall: { readonly failed: boolean } | null;
  /** True if a reinstall has removed the tenant's account and not brought it back. */
  readonly isLostToReinstall: boolean;
}

export interface InstanceVerdict {
  readonly status: InstanceStatus;
  readonly reason: string;
  readonly nextAction: string | null;
}

const says = (status: InstanceStatus, reason: string, nextAction: string | null = null): InstanceVerdict => ({
  status,
  reason,
  nextAction,
});

/** What a tenant sees while a requested power action has stopped the host, or is about to stop the host. */
const OF_POWER: Readonly<Record<PowerIntent["kind"], InstanceVerdict>> = {
  stopping: says("Stopped", "The host is being powered off, as requested"),
  off: says("Stopped", "The host is powered off, as requested", "Power it on with power-on-instance"),
  restarting: says("Rebooting", "The host restarts, as requested"),
};

const REINSTALLING = says("Provisioning", "The host is installed anew, as requested");
const NOT_REINSTALLED = "The host could not be installed anew";
const OPERATOR_ACTS = "An operator resumes or cancels the reinstall (get-decommission)";
/** When the allocation is ending, the instance has been released already, so the message to the tenant does not advise to release it. */
const failedReinstall = (ends: boolean): InstanceVerdict =>
  says("Error", NOT_REINSTALLED, ends ? OPERATOR_ACTS : `${OPERATOR_ACTS}, or release the instance`);
const LOST_TO_REINSTALL = says(
  "Error",
  "The host lost its system in a reinstall that did not come to its end",
  "Ask for the reinstall again with reinstall-instance, or release the instance",
);

/** What a tenant sees for each status of the tenant's node; null if the conditions of the node decide. */
const OF_NODE: Readonly<Record<NodeStatus, InstanceVerdict | null>> = {
  bootstrap_issued: says("Provisioning", "The host is installed"),
  enrolling: says("Provisioning", "The host is installed"),
  active: null,
  offline: says("Error", "The host does not report"),
  quarantined: says("Error", "The host is quarantined"),
  draining: says("Error", "The host is taken out of service"),
  retired: says("Error", "The host is out of service"),
  removing: says("Error", "The host is removed"),
  deleted: says("Error", "The host is removed"),
};

/** A condition that the node has not reported yet in this provisioning may still come; any other unmet condition is a fault. */
const MAY_STILL_COME: ReadonlySet<Lack> = new Set(["missing", "older_generation"]);

/**
 * Decides what the tenant of an allocation sees. The tenant sees the status Ready only if the node's conditions let it take work. As in NVIDIA's
 * NICo, the status shows a repair only where the instance would otherwise be Ready, so a repair hides no fault.
 */
export function instanceStatus(facts: InstanceFacts): InstanceVerdict {
  const { allocation, node, lacks, isRepaired, power, hasFailedTurnover, reinstall } = facts;
  if (reinstall?.failed === true) return failedReinstall(allocation === "ending");
  if (allocation === "ending")
    return hasFailedTurnover
      ? says("Error", "The host could not be cleared of the tenant")
      : says("Terminating", "The host is cleared of the tenant");
  if (reinstall !== null) return REINSTALLING;
  if (facts.isLostToReinstall) return LOST_TO_REINSTALL;
  if (allocation === "failed") return says("Error", "The tenant's account could not be made");
  if (power !== null && (node === "active" || node === "offline")) return OF_POWER[power];
  const ofNode = node === null ? says("Error", "The host is gone") : OF_NODE[node];
  if (ofNode !== null) return ofNode;
  if (lacks.length > 0)
    return lacks.every((lack) => MAY_STILL_COME.has(lack))
      ? says(allocation === "granting" ? "Pending" : "Provisioning", "The host has not reported yet that it is ready")
      : says("Error", "The host is not ready");
  if (allocation === "granting") return says("Provisioning", "The tenant's account is made");
  return isRepaired ? says("Repairing", "The host is repaired") : says("Ready", "The host is ready");
}
