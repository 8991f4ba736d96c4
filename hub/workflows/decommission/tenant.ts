import type { ResidueTenant } from "../../../shared/residue/snapshot.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/**
 * The tenant's account for whose traces the agent searches the host. `tenantOf` is null if the node had no tenant, or if no task's result shows that
 * the agent made the account.
 */
export const tenantOf = ({ tenancy }: Pick<DecommissionContext, "tenancy">): ResidueTenant | null =>
  tenancy === null || tenancy.uid === null ? null : { login_user: tenancy.loginUser, uid: tenancy.uid };
