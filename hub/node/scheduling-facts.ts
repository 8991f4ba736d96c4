import { policyFor } from "../../shared/readiness-policy.ts";
import type { NodeRow } from "../db/queries/node-reads.ts";
import { lackAtTurnover } from "./baseline-lack.ts";
import { whyClaimImpossible } from "./gpu-claim.ts";
import { overridesThat } from "./health-aggregate.ts";
import { powerIntentOf } from "./power-intent.ts";
import type { ReadinessFacts } from "./readiness-verdict.ts";
import type { SchedulingFacts } from "./schedulable.ts";
import type { TurnoverFacts } from "./turnover-mode.ts";

/** Returns the facts that decide how the hub cleans a node after a tenant with or without root rights. */
export const turnoverFactsOf = ({ node, policy }: Pick<NodeRow, "node" | "policy">, root: boolean): TurnoverFacts => ({
  grantsRoot: root,
  onboardingMode: node.onboardingMode,
  policy,
});

/** Returns the facts that decide, together with the node's conditions, whether the node is ready. */
export const readinessFactsOf = ({ node, policy, now }: Pick<NodeRow, "node" | "policy" | "now">): ReadinessFacts => ({
  policy: policyFor(policy?.readinessPolicy ?? null, node.runsAgent),
  host: { networkOwnedBy: node.networkOwnedBy, runsAgent: node.runsAgent },
  generation: node.generation,
  begunAt: node.generationBeganAt,
  now,
});

/**
 * Returns the facts that decide whether a node may get new work. If `root` is true, the facts are about an allocation of the node to a tenant with
 * root rights. After a tenant with root rights, the profile may require a reimage, and a reimage needs no baseline.
 */
export function schedulingFactsOf(row: NodeRow, root: boolean): SchedulingFacts {
  const { node, hostClosed, allocation, overrides, repair, policy, baselineLack, pastUnknown, gpuVendor } = row;
  const claim = { level: policy?.gpuClaimLevel ?? null, vendor: gpuVendor, gpus: node.gpusTotal };
  return {
    status: node.status,
    ...readinessFactsOf(row),
    cordonReason: node.cordonReason,
    hostClosed,
    tenant: allocation?.tenant ?? null,
    overrides: overridesThat("PreventAllocations", overrides),
    repair,
    powerIntent: powerIntentOf(row.power ?? undefined, node, node.lastAgentContactAt),
    pastUnknown,
    baselineLack: lackAtTurnover(turnoverFactsOf(row, root), baselineLack),
    claimImpossible: whyClaimImpossible(claim),
  };
}
