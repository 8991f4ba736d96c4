import { type OnboardingMode, PROVISIONED_BY } from "../../shared/onboarding-mode.ts";
import type { TurnoverPolicy } from "../db/queries/node-profiles.ts";

/** The facts that decide between a soft reset and a reimage of a node after a tenant. */
export interface TurnoverFacts {
  /** True if the tenant has root rights, or could get them. */
  readonly grantsRoot: boolean;
  readonly onboardingMode: OnboardingMode;
  /** The rules of the node's profile for cleaning the node, or null for a node without a profile. */
  readonly policy: Pick<TurnoverPolicy, "turnoverMode" | "softResetAfterRoot"> | null;
}

/**
 * Chooses whether a node is cleaned after a tenant by a soft reset or by a reimage (architecture 14.2, decision C4). After a tenant with root rights,
 * the node is cleaned by a reimage, unless the profile explicitly allows a soft reset. A tenant with root rights may have changed the kernel, on
 * which the agent's search for the tenant's traces relies. Only MAAS can deploy a host again, so a host that a person or an external system installed
 * gets a soft reset.
 */
export function turnoverMode({ grantsRoot, onboardingMode, policy }: TurnoverFacts): "soft_reset" | "reimage" {
  if (PROVISIONED_BY[onboardingMode] !== "maas" || policy === null) return "soft_reset";
  if (grantsRoot && !policy.softResetAfterRoot) return "reimage";
  return policy.turnoverMode;
}

/**
 * True if a soft reset must not clean the node after its tenant (decision C4). A soft reset must not clean the node if the tenant could get root
 * rights and the profile does not explicitly allow a soft reset after such a tenant. Without a profile, no rule allows a soft reset after a tenant
 * with root rights.
 */
export const isSoftResetBarred = ({ grantsRoot, policy }: TurnoverFacts): boolean =>
  grantsRoot && policy?.softResetAfterRoot !== true;

/**
 * True if a tenant with root rights may get the node. A tenant with root rights may get the node only if the node's profile allows a soft reset after
 * such a tenant, or if a reimage can clean the node.
 */
export const mayGrantRoot = (facts: Omit<TurnoverFacts, "grantsRoot">): boolean =>
  facts.policy?.softResetAfterRoot === true || turnoverMode({ ...facts, grantsRoot: true }) === "reimage";
