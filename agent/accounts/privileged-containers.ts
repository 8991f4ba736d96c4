import type { System } from "../system/system.ts";
import { isProcessOf } from "./logins.ts";
import type { Tenant } from "./tenant.ts";

/**
 * Returns the way to root by containers that run as the tenant, whoever started them. A container of another user says nothing about the tenant, for
 * example a privileged container of the site's monitoring. Containers that a tenant starts through an engine need the engine's socket, which
 * `waysByEngines` finds.
 */
export async function waysByContainers({ processes }: System, tenant: Tenant): Promise<string[]> {
  const own = (await processes.read()).filter(isProcessOf(tenant));
  const rights = new Set(own.map((process) => processes.containerRights(process)));
  return [
    ...(rights.has("privileged") ? ["privileged container"] : []),
    ...(rights.has("unreadable") ? ["unreadable container"] : []),
  ];
}
