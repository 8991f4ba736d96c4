import { type Bars, CONDITION_TYPES, type ConditionRule } from "../../shared/condition-types.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { type BaselineLack, lacksNothing, toldLack } from "./baseline-lack.ts";

export interface SchedulingFacts {
  readonly status: NodeStatus;
  readonly cordonReason: string | null;
  readonly generation: number;
  /** True if a drain closed the host to users, and nothing has shown since then that the host is open. */
  readonly hostClosed: boolean;
  /** The tenant of the node's open allocation, or null if the node has no open allocation. */
  readonly tenant: string | null;
  readonly overrides: readonly { readonly source: string; readonly reason: string }[];
  /** True if the node was adopted and its host still runs the system of that time, so that nobody knows who used the system. */
  readonly pastUnknown: boolean;
  /** The residue items that the soft reset after the node's next tenant would miss in the node's baseline. */
  readonly baselineLack: BaselineLack;
  /** The reason why no cleaning of the node can reach the level of GPU memory cleaning that its profile requires; null if a cleaning can. */
  readonly claimImpossible: string | null;
}
export interface ConditionFacts {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly generation: number;
  /**
   * True if the condition has expired, because nobody has reported the condition again in time. An expired condition counts as Unknown, whatever the
   * last report said.
   */
  readonly stale: boolean;
}

/** A reason that keeps new work off a node: `kind` is one of a few names that a caller can count over many nodes, and `text` is for operators. */
export interface Obstacle {
  readonly kind: string;
  readonly text: string;
}

/**
 * The hub decides for each request whether the node may get work, and never stores the answer (architecture 3). The list `reasons` is empty only if
 * the node may get new work.
 */
export function schedulability(
  node: SchedulingFacts,
  conditions: readonly ConditionFacts[],
): { schedulable: boolean; reasons: string[] } {
  const reasons = obstaclesOf(node, conditions).map(({ text }) => text);
  return { schedulable: reasons.length === 0, reasons };
}

/** Returns all reasons that keep new work off a node, in the order in which an operator has to remove them. */
export function obstaclesOf(node: SchedulingFacts, conditions: readonly ConditionFacts[]): Obstacle[] {
  const found: Obstacle[] = [];
  if (node.tenant !== null) found.push({ kind: "allocated", text: `allocated to ${node.tenant}` });
  if (node.status !== "active") found.push({ kind: node.status, text: `the node is ${node.status}` });
  if (node.status === "active" && node.hostClosed)
    found.push({
      kind: "closed_to_users",
      text: "its host still keeps users out after a drain, because node.undrain has not succeeded; activate the node again to retry",
    });
  if (node.cordonReason !== null) found.push({ kind: "cordoned", text: `cordoned: ${node.cordonReason}` });
  for (const { source, reason } of node.overrides)
    found.push({
      kind: "health_override",
      text: `health override ${source}: ${reason}. When its cause is gone, remove it with remove-node-health-override`,
    });
  for (const [type, { bars, tolerates }] of Object.entries<ConditionRule>(CONDITION_TYPES)) {
    const said = conditions.find((one) => one.type === type);
    if (tolerates !== undefined && said?.reason === tolerates) continue;
    const text = barredBy(type, bars, said, node.generation);
    if (text !== null) found.push({ kind: `without_${type}`, text });
  }
  if (node.status === "active" && node.pastUnknown)
    found.push({
      kind: "past_unknown",
      text: "its host ran before it was adopted, and nobody knows who used it. Reimage the node to give it a clean system",
    });
  else if (node.status === "active" && node.baselineLack === null)
    found.push({ kind: "no_baseline", text: `it has ${toldLack(null)}, ${NO_BASELINE}` });
  else if (node.status === "active" && !lacksNothing(node.baselineLack))
    found.push({ kind: "incomplete_baseline", text: `it has ${toldLack(node.baselineLack)}, ${INCOMPLETE_BASELINE}` });
  if (node.status === "active" && node.claimImpossible !== null)
    found.push({
      kind: "gpu_claim_impossible",
      text: `no cleaning after a tenant could meet gpu_claim_level of its profile: ${node.claimImpossible}. Change gpu_claim_level of the profile, or the SKU`,
    });
  return found;
}

const NO_BASELINE =
  "so no soft reset could show that the host is clean after a tenant. The hub takes one while the agent is connected: look at get-node-baseline. For a node that already had a tenant, use take-node-baseline or reimage it";
const INCOMPLETE_BASELINE =
  "so no soft reset could show that the host is clean after a tenant. Update its agent: the hub then takes a new baseline unless the node had a tenant. If it had one, reimage the node";

/**
 * Returns the reason why a condition keeps work off a node; null if the condition allows work. A condition of an earlier generation counts as
 * missing.
 */
export function barredBy(
  type: string,
  bars: Bars,
  condition: ConditionFacts | undefined,
  generation: number,
): string | null {
  if (bars === "never") return null;
  if (condition === undefined || condition.generation !== generation) {
    if (bars !== "missing_or_not_true") return null;
    return condition === undefined ? `${type} was never reported` : `${type} is of an earlier provisioning`;
  }
  if (condition.stale) return `${type} is stale`;
  return condition.status === "True" ? null : `${type} is ${condition.status}: ${condition.reason}`;
}
