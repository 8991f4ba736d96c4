/**
 * The roles of people and programs that use the API (decision I3). The roles are not ordered from weak to strong: the table `RIGHTS_OF` in
 * `shared/api/rights.ts` says which rights each role has.
 */
export const API_ROLES = ["viewer", "operator", "admin", "provisioner", "tenant", "repair"] as const;
export type ApiRole = (typeof API_ROLES)[number];

/** The roles whose holders see only the allocations of one tenant, which the holder's token or group names. */
export const ROLES_OF_TENANTS = ["tenant", "repair"] as const satisfies readonly ApiRole[];
export const isRoleOfTenants = (role: ApiRole): boolean => (ROLES_OF_TENANTS as readonly ApiRole[]).includes(role);
