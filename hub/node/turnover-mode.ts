import type { TurnoverPolicy } from "../db/queries/node-profiles.ts";

/** What decides how a node is cleaned between two tenants. */
export interface TurnoverFacts {
  readonly grantsRoot: boolean;
  readonly onboardingMode: "maas" | "manual";
  /** The policy of the node's profile, or null for a node without a profile. */
  readonly policy: TurnoverPolicy | null;
}

/**
 * The mode of a turnover (architecture 14.2, decision C4). A tenant with root may have changed the kernel that would check him, so a reimage follows
 * unless the profile explicitly allows a soft reset. Only MAAS can deploy a host again, so a host that was installed by hand gets a soft reset.
 */
export function turnoverMode({ grantsRoot, onboardingMode, policy }: TurnoverFacts): "soft_reset" | "reimage" {
  if (onboardingMode === "manual" || policy === null) return "soft_reset";
  if (grantsRoot && !policy.softResetAfterRoot) return "reimage";
  return policy.turnoverMode;
}

/** True if a tenant with root may get the node: the node can be reimaged afterwards, or its profile allows a soft reset after root. */
export const mayGrantRoot = (facts: Omit<TurnoverFacts, "grantsRoot">): boolean =>
  facts.policy?.softResetAfterRoot === true || turnoverMode({ ...facts, grantsRoot: true }) === "reimage";
