import type { NodeStatus } from "../../shared/node-status.ts";
import { type BaselineLack, lacksNothing, toldLack } from "./baseline-lack.ts";
import { type PowerIntent, toldIntent } from "./power-intent.ts";
import {
  type ConditionFacts,
  type Lacking,
  type ReadinessFacts,
  readinessOf,
  toldLacking,
} from "./readiness-verdict.ts";

export interface SchedulingFacts extends ReadinessFacts {
  readonly status: NodeStatus;
  readonly cordonReason: string | null;
  /** True if a drain closed the host to users, and nothing has shown since then that the host is open. */
  readonly hostClosed: boolean;
  /** The tenant of the node's open allocation, or null if the node has no open allocation. */
  readonly tenant: string | null;
  readonly overrides: readonly { readonly source: string; readonly reason: string }[];
  /** The node's open repair case, which keeps new work off the node whatever the node's health overrides say (decision R1). */
  readonly repair: { readonly id: string; readonly state: string } | null;
  /** Why the node's host is away at somebody's request, for example switched off; null if nobody has asked for it. */
  readonly powerIntent: PowerIntent | null;
  /**
   * True if the node was adopted and its host still runs the operating system of the time of the adoption, so that nobody knows who used this system.
   */
  readonly pastUnknown: boolean;
  /** The residue items that the soft reset after the node's next tenant would miss in the node's baseline. */
  readonly baselineLack: BaselineLack;
  /** The reason why no cleaning of the node can reach the level of GPU memory cleaning that its profile requires; null if a cleaning can. */
  readonly claimImpossible: string | null;
}

/** A reason that keeps new work off a node: `kind` is one of a few names that a caller can count over many nodes, and `text` is for operators. */
export interface Obstacle {
  readonly kind: string;
  /** The source of the health override that is the obstacle; other obstacles have none. */
  readonly source?: string;
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
  if (node.status !== "active") {
    const away = node.status === "offline" && node.powerIntent !== null ? `: ${toldIntent(node.powerIntent)}` : "";
    found.push({ kind: node.status, text: `the node is ${node.status}${away}` });
  }
  if (node.status === "active" && node.hostClosed)
    found.push({
      kind: "closed_to_users",
      text: "its host still keeps users out after a drain, because node.undrain has not succeeded; activate the node again to retry",
    });
  if (node.status === "active" && node.powerIntent !== null)
    found.push({ kind: "power_action", text: toldIntent(node.powerIntent) });
  if (node.cordonReason !== null) found.push({ kind: "cordoned", text: `cordoned: ${node.cordonReason}` });
  for (const { source, reason } of node.overrides)
    found.push({
      kind: "health_override",
      source,
      text: `health override ${source}: ${reason}. When its cause is gone, remove it with remove-node-health-override`,
    });
  if (node.repair !== null)
    found.push({
      kind: "in_repair",
      text: `repair ${node.repair.id} is ${node.repair.state}. get-repair shows what is next, and close-repair takes the node out of repair`,
    });
  found.push(...obstaclesOfReadiness(readinessOf(node, conditions).lacking));
  if (node.status === "active" && node.pastUnknown)
    found.push({
      kind: "past_unknown",
      text: "its host ran before it was adopted, and nobody knows who used it. Reimage the node, or let its external system provision it again, to give it a clean system",
    });
  else if (node.status === "active" && !node.host.runsAgent)
    found.push({
      kind: "no_agent",
      text: "its host runs no agent, so nothing could make a tenant's account or clean the host after a tenant. Begin an attempt with agent: muster",
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

const toldWithAction = (one: Lacking): string => `${toldLacking(one)}. ${one.nextAction}`;

/**
 * The unmet conditions of a readiness policy's group `any` are together one obstacle to new work, because one met condition of the group is enough.
 * Each unmet condition outside of a readiness policy's groups `any` is an obstacle of its own to new work.
 */
function obstaclesOfReadiness(lacking: readonly Lacking[]): Obstacle[] {
  const single = lacking.filter(({ of }) => of !== "any");
  const groups = [...new Set(lacking.flatMap(({ of, group }) => (of === "any" && group !== null ? [group] : [])))];
  return [
    ...single.map((one) => ({ kind: `without_${one.type}`, text: toldWithAction(one) })),
    ...groups.map((group) => {
      const parts = lacking.filter((one) => one.of === "any" && one.group === group);
      const types = [...new Set(parts.map(({ type }) => type))];
      return {
        kind: `without_${types.join("_or_")}`,
        text: `its profile needs one of ${types.join(", ")}: ${parts.map(toldWithAction).join("; ")}`,
      };
    }),
  ];
}
