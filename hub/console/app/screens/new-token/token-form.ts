import type { Body } from "../../api/schema.ts";
import { present, tokenName, whole } from "../../forms/checks.ts";
import type { Errors } from "../../forms/form-errors.ts";

export type Role = Body<"createToken">["role"];

export interface TokenValues {
  readonly name: string;
  readonly role: Role;
  readonly site_ids: readonly string[];
  readonly tenant: string;
  readonly expires_in_days: string;
}

/** What each role may do, in one sentence per role (docs/people.md has the table of rights). */
export const ROLE_WORDS: Readonly<Record<Role, string>> = {
  viewer: "reads everything and changes nothing",
  operator: "works with hosts: onboardings, decommissions, tasks, allocations",
  admin: "may do everything",
  provisioner: "an external provisioning system: finds nodes, follows events, reports readiness signals",
  tenant: "sees the allocations and records of one tenant, and changes nothing",
  repair: "a repair system: sees the allocations that have its own tenant's name",
};

export const needsTenant = (role: Role): boolean => role === "tenant" || role === "repair";

export const checkToken = ({ name, role, tenant, expires_in_days: days }: TokenValues): Errors<TokenValues> => ({
  name: tokenName(name),
  tenant: needsTenant(role) ? present(tenant) : undefined,
  expires_in_days: whole(1, 366)(days),
});

export const tokenBody = (values: TokenValues): Body<"createToken"> => ({
  name: values.name.trim(),
  role: values.role,
  expires_in_days: Number(values.expires_in_days),
  ...(values.site_ids.length === 0 ? {} : { site_ids: [...values.site_ids] }),
  ...(needsTenant(values.role) ? { tenant: values.tenant.trim() } : {}),
});
