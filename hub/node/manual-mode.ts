import type { ReadinessSignal, ReportedCondition } from "../../shared/readiness.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { orderFirstBaseline } from "./baseline.ts";
import { moveNode } from "./move-node.ts";

/**
 * In manual mode, a person runs the bootstrap command on a host, and no onboarding brings the host into service. The host's enrollment makes the node
 * `enrolling`, and the agent's first report that the host is healthy makes the node `active` (state model 3.3).
 */
export async function enrollManualNode(tx: Tx, node: Node): Promise<void> {
  if (node.onboardingMode !== "manual" || node.status !== "bootstrap_issued") return;
  const move = { from: "bootstrap_issued", to: "enrolling", owner: "onboarding" } as const;
  await moveNode(tx, node.id, move, "The host enrolled with its bootstrap token");
}

/**
 * Makes a node of manual mode `active` when its agent reports a healthy host and a successful bootstrap. While a node of manual mode is not yet
 * `active`, its conditions tell an operator which report of the agent is missing.
 */
export async function admitManualNode(tx: Tx, node: Node, signal: ReadinessSignal): Promise<void> {
  if (node.onboardingMode !== "manual" || node.status !== "enrolling" || signal.generation !== node.generation) return;
  if (!isHealthy(signal.conditions)) return;
  const move = { from: "enrolling", to: "active", owner: "onboarding" } as const;
  await moveNode(tx, node.id, move, "The host of manual mode is enrolled, connected and healthy");
  await orderFirstBaseline(tx, node.id);
}

/** True if the agent reports a healthy host and no unfinished part of the bootstrap. */
export const isHealthy = (conditions: readonly Pick<ReportedCondition, "type" | "status">[]): boolean =>
  conditions.some((one) => one.type === "agent.healthy" && one.status === "True") &&
  !conditions.some((one) => one.type.startsWith("bootstrap.") && one.status !== "True");
