import type { ResidueTenant } from "../../../shared/residue/snapshot.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/** The account for whose traces the host is searched. Null if the node had no tenant, or no result says that the agent made the account. */
export const tenantOf = ({ tenancy }: Pick<DecommissionContext, "tenancy">): ResidueTenant | null =>
  tenancy === null || tenancy.uid === null ? null : { login_user: tenancy.loginUser, uid: tenancy.uid };
