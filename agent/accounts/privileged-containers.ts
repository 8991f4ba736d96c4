import type { System } from "../system/system.ts";
import { isProcessOf } from "./logins.ts";
import type { Tenant } from "./tenant.ts";

/**
 * Returns how containers that run as the tenant, whoever started them, can give the tenant the rights of root. A container of another user, for
 * example a privileged container of the site's monitoring, gives the tenant no rights. Containers that a tenant starts through a container engine
 * need the engine's socket, which `waysByEngines` finds.
 */
export async function waysByContainers({ processes }: System, tenant: Tenant): Promise<string[]> {
  const own = (await processes.read()).filter(isProcessOf(tenant));
  const rights = new Set(own.map((process) => processes.containerRights(process)));
  return [
    ...(rights.has("privileged") ? ["privileged container"] : []),
    ...(rights.has("unreadable") ? ["unreadable container"] : []),
  ];
}
