import type { NodeStatus } from "../../shared/node-status.ts";

export interface SchedulingFacts {
  readonly status: NodeStatus;
  readonly cordonReason: string | null;
  readonly generation: number;
  /** A drain closed the host, and nothing has shown since that it is open. */
  readonly hostClosed: boolean;
}
export interface ConditionFacts {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly generation: number;
  readonly expiresAt: Date | null;
}

/** What every node needs, whatever its profile says. */
const REQUIRED_CONDITIONS = ["agent.connected", "agent.healthy", "os.booted"] as const;

/** May work be put on this node? Derived, never stored (architecture 2); `reasons` is empty exactly when it may. */
export function schedulability(
  node: SchedulingFacts,
  conditions: readonly ConditionFacts[],
  now: Date,
): { schedulable: boolean; reasons: string[] } {
  const reasons: string[] = [];
  if (node.status !== "active") reasons.push(`the node is ${node.status}`);
  if (node.status === "active" && node.hostClosed)
    reasons.push(
      "its host lets nobody in since it was drained: node.undrain has not succeeded; activate it again to retry",
    );
  if (node.cordonReason !== null) reasons.push(`cordoned: ${node.cordonReason}`);
  for (const type of REQUIRED_CONDITIONS) {
    const condition = conditions.find((one) => one.type === type);
    if (condition === undefined) reasons.push(`${type} was never reported`);
    else if (condition.generation !== node.generation) reasons.push(`${type} is of an earlier provisioning`);
    else if (condition.expiresAt !== null && condition.expiresAt <= now) reasons.push(`${type} is stale`);
    else if (condition.status !== "True") reasons.push(`${type} is ${condition.status}: ${condition.reason}`);
  }
  return { schedulable: reasons.length === 0, reasons };
}
