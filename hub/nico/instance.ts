import type { AllocationStatus } from "../../shared/allocation-status.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import { stableId } from "./stable-id.ts";

export type InstanceStatus = "Provisioning" | "Ready" | "Repairing" | "Terminating" | "Error";

/** Translates an allocation that has not ended. A tenant's host that is not ready is an error, unless its repair is asked for or under way. */
export function instanceStatusOf(
  allocation: Exclude<AllocationStatus, "ended">,
  host: { readonly ready: boolean; readonly underRepair: boolean },
): InstanceStatus {
  if (allocation === "ending") return "Terminating";
  if (allocation === "failed") return "Error";
  if (allocation === "granting") return "Provisioning";
  if (host.underRepair) return "Repairing";
  return host.ready ? "Ready" : "Error";
}

/** The one flat network of a tenant at a site. Muster changes no network, so the id only says which machines share their tenant and site. */
export const vpcOf = (siteId: string | null, tenant: string): string => stableId("vpc", `${siteId}/${tenant}`);

export function toInstance(row: AllocationRow, status: InstanceStatus, sku: string | null) {
  const created = row.createdAt.toISOString();
  return {
    id: row.id,
    name: row.hostname,
    description: null,
    tenantId: stableId("tenant", row.tenant),
    infrastructureProviderId: row.siteId === null ? null : stableId("provider", row.siteId),
    siteId: row.siteId,
    instanceTypeId: sku === null ? null : stableId("sku", sku),
    vpcId: vpcOf(row.siteId, row.tenant),
    machineId: row.nodeId,
    operatingSystemId: null,
    labels: row.labels,
    interfaces: [],
    sshKeyGroupIds: [],
    serialConsoleUrl: null,
    status,
    created,
    updated: (row.activeAt ?? row.createdAt).toISOString(),
  };
}
