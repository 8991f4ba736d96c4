import type { MachineStatus } from "../../shared/api/instances.ts";
import type { NodeStatus } from "../../shared/node-status.ts";

/** The tenant's use of a node: `none` without one, `ending` from the request to end it until the node is clean. */
export type TenantUse = "none" | "open" | "ending";

export interface MachineFacts {
  readonly node: NodeStatus;
  readonly use: TenantUse;
  /** True while an operation cleans the node after a tenant. */
  readonly cleaning: boolean;
  /** True if an alert prevents allocations, or a condition that every node needs is missing. */
  readonly unhealthy: boolean;
  /** True if the host is away because somebody has requested a power action, which is no fault (decision N10). */
  readonly awayByRequest: boolean;
  /** True while a person keeps new work off the node. */
  readonly cordoned: boolean;
}

/**
 * Translates a node into the status of its machine, in the words of NVIDIA NICo. A cleaning is `Reset` whatever alerts the node has, because NICo's
 * clients look for `Reset` between `InUse` and `Ready` (NICo's own service never sets it). An allocation that is ending while no operation cleans the
 * node means that a cleaning has failed, so the machine's status in NICo's words is `Error`.
 */
export function machineStatusOf(facts: MachineFacts): MachineStatus {
  const { node, use, cleaning, unhealthy, awayByRequest, cordoned } = facts;
  if (node === "deleted" || node === "retired") return "Decommissioned";
  if (cleaning) return "Reset";
  if (node === "removing") return "Decommissioning";
  // Only a reinstall installs a host anew during an open allocation, and a reinstall does not clean the host for another tenant.
  if (node === "enrolling" && use === "open") return "InUse";
  if (node === "bootstrap_issued" || node === "enrolling") return "Initializing";
  if (awayByRequest && (node === "active" || node === "offline") && use !== "ending")
    return use === "open" ? "InUse" : "Maintenance";
  if (node !== "active" && node !== "draining") return "Error";
  if (use === "ending" || unhealthy) return "Error";
  if (use === "open") return "InUse";
  return node === "draining" || cordoned ? "Maintenance" : "Ready";
}
