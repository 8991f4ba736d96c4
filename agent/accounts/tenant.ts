import type { REVOKE_STEPS } from "../../shared/tasks/allocation-revoke-user.ts";
import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { System } from "../system/system.ts";
import type { SubIds } from "./account-files.ts";

/** The tenant's account as the agent recorded it; the agent uses its record because a tenant with root rights may have changed the host's files. */
export interface Tenant {
  readonly allocationId: string;
  readonly loginUser: string;
  readonly uid: number;
  readonly home: string;
  /** The ranges of subordinate uids for the tenant's own containers. */
  readonly subUids: readonly SubIds[];
}

export interface Revocation {
  readonly system: System;
  readonly tenant: Tenant;
  /** With `plan`, a step of an account's revocation changes nothing and says what it would do. */
  readonly plan: boolean;
  readonly signal: AbortSignal;
  /** While a step of the task `allocation.revoke_user` takes long, a progress report renews the task's lease. */
  readonly alive: () => void;
}

export type RevokeStepName = (typeof REVOKE_STEPS)[number];
export type RevokeStep = CleaningStep & { readonly step: RevokeStepName };

export const ownsUid = (tenant: Tenant, uid: number): boolean =>
  uid === tenant.uid || tenant.subUids.some(({ first, count }) => uid >= first && uid < first + count);
