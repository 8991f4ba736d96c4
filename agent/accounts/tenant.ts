import type { REVOKE_STEPS } from "../../shared/tasks/allocation-revoke-user.ts";
import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { System } from "../system/system.ts";
import type { SubIds } from "./account-files.ts";

/**
 * The tenant's account that a revocation removes. The data of a `Tenant` comes from the agent's record, because a tenant with root rights may have
 * changed the host's files.
 */
export interface Tenant {
  readonly allocationId: string;
  readonly loginUser: string;
  readonly uid: number;
  readonly home: string;
  /** The ranges of subordinate uids that the tenant's own containers use. */
  readonly subUids: readonly SubIds[];
}

export interface Revocation {
  readonly system: System;
  readonly tenant: Tenant;
  /** If `plan` is true, a revocation's step changes nothing and says what it would do. */
  readonly plan: boolean;
  readonly signal: AbortSignal;
  /** Sends a progress report, which renews the lease of the task `allocation.revoke_user` while a step of the revocation takes long. */
  readonly alive: () => void;
}

export type RevokeStepName = (typeof REVOKE_STEPS)[number];
export type RevokeStep = CleaningStep & { readonly step: RevokeStepName };

export const ownsUid = (tenant: Tenant, uid: number): boolean =>
  uid === tenant.uid || tenant.subUids.some(({ first, count }) => uid >= first && uid < first + count);
