import type { InstanceStatus } from "../../shared/api/instances.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import { stableId } from "./stable-id.ts";

/**
 * Returns the id of the one flat network (NICo's VPC) that Muster shows for a tenant at a site. Muster changes no network, so the id of a tenant's
 * network only says which machines share their tenant and site.
 */
export const vpcOf = (siteId: string | null, tenant: string): string => stableId("vpc", `${siteId}/${tenant}`);

/** NICo has no status for an instance that is off. NICo's clients read the status `Pending` as neither usable nor broken. */
const inWords = (status: InstanceStatus): Exclude<InstanceStatus, "Stopped"> =>
  status === "Stopped" ? "Pending" : status;

export function toInstance(row: AllocationRow, status: InstanceStatus, sku: string | null | undefined) {
  const created = row.createdAt.toISOString();
  return {
    id: row.id,
    name: row.name ?? row.hostname,
    description: row.description,
    tenantId: stableId("tenant", row.tenant),
    infrastructureProviderId: row.siteId === null ? null : stableId("provider", row.siteId),
    siteId: row.siteId,
    instanceTypeId: sku === null || sku === undefined ? null : stableId("sku", sku),
    vpcId: vpcOf(row.siteId, row.tenant),
    machineId: row.nodeId,
    operatingSystemId: null,
    labels: row.labels,
    interfaces: [],
    sshKeyGroupIds: row.sshKeyGroupIds,
    loginUser: row.loginUser,
    serialConsoleUrl: null,
    status: inWords(status),
    created,
    updated: (row.activeAt ?? row.createdAt).toISOString(),
  };
}
