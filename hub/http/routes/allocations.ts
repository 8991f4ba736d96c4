import { z } from "zod";
import { AllocationStatus } from "../../../shared/allocation-status.ts";
import { AllocationBatch, AllocationBatchCreate } from "../../../shared/api/allocation-batches.ts";
import {
  Allocation,
  AllocationCreate,
  AllocationDetail,
  AllocationRelease,
  AllocationVerb,
  Tenant,
} from "../../../shared/api/allocations.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { AllocationId, NodeId, SiteId, SshKeyGroupId, SshKeyId } from "../../../shared/ids.ts";
import { LoginUser } from "../../../shared/linux-user.ts";
import { createAllocation } from "../../allocations/create-allocation.ts";
import { createAllocationBatch } from "../../allocations/create-batch.ts";
import { releaseAllocation } from "../../allocations/end-allocation.ts";
import { grantAgain } from "../../allocations/grant-again.ts";
import { keySync } from "../../allocations/key-sync.ts";
import { nextActionOf } from "../../allocations/next-action.ts";
import { readKeyFacts } from "../../db/queries/allocation-keys.ts";
import { listAllocations, readAllocation } from "../../db/queries/allocations.ts";
import { recordAudit } from "../../db/queries/audit-logs.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { AllocationRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { mustHaveRight } from "../../people/place.ts";
import { releaseForRepair } from "../../repair/release-for-repair.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, sourceOf, writeRoute } from "../route.ts";

const AllocationParams = z.strictObject({ id: AllocationId });
const tag = "allocations";
const path = "/api/v1/admin/allocations";

const toAllocation = (row: AllocationRow): z.input<typeof Allocation> => ({
  id: row.id,
  node_id: row.nodeId,
  hostname: row.hostname,
  site_id: row.siteId,
  tenant: row.tenant,
  login_user: row.loginUser,
  root: row.grantsRoot,
  root_by: row.rootBy,
  name: row.name,
  description: row.description,
  labels: row.labels,
  allow_unhealthy_machine: row.allowUnhealthyMachine,
  unhealthy_because: row.unhealthyBecause,
  status: row.status,
  error_code: row.errorCode,
  error_message: row.errorMessage,
  next_action: nextActionOf(row),
  grant_task_id: row.grantTaskId,
  decommission_id: row.decommissionId,
  created_by: row.createdBy,
  created_at: row.createdAt.toISOString(),
  active_at: isoOrNull(row.activeAt),
  ends_at: isoOrNull(row.endsAt),
  ended_at: isoOrNull(row.endedAt),
  end_reason: row.endReason,
  end_forced: row.endForced,
});
async function toDetails(db: Db | Tx, rows: readonly AllocationRow[]): Promise<z.input<typeof AllocationDetail>[]> {
  const all = await readKeyFacts(db, { ids: rows.map(({ id }) => id) });
  return rows.map((row) => {
    const facts = all.find(({ id }) => id === row.id);
    return {
      ...toAllocation(row),
      ssh_keys: row.sshKeys,
      ssh_key_ids: row.sshKeyIds,
      ssh_key_group_ids: row.sshKeyGroupIds,
      key_sync: facts === undefined ? null : keySync(facts),
    };
  });
}

async function toDetail(db: Db | Tx, row: AllocationRow): Promise<z.input<typeof AllocationDetail>> {
  const [detail] = await toDetails(db, [row]);
  if (detail === undefined) throw new Error(`no detail of allocation ${row.id}`);
  return detail;
}

async function mustFindAllocation(db: Db | Tx, id: AllocationId): Promise<AllocationRow> {
  const row = await readAllocation(db, id);
  if (row === null) throw new ApiError("not_found", `There is no allocation ${id}.`);
  return row;
}

/**
 * Returns the audit entry of a change of an allocation. The audit entry names only the number of the allocation's SSH keys, because an SSH key may
 * identify a person.
 */
const auditOf = (row: AllocationRow, more: Readonly<Record<string, unknown>>) => ({
  target: `allocations/${row.id}`,
  details: { node_id: row.nodeId, hostname: row.hostname, tenant: row.tenant, ...more },
});

const creationOf = (row: AllocationRow) =>
  auditOf(row, {
    login_user: row.loginUser,
    root: row.grantsRoot,
    ssh_keys: row.sshKeys.length,
    ssh_key_group_ids: row.sshKeyGroupIds,
    allow_unhealthy_machine: row.allowUnhealthyMachine,
    unhealthy_because: row.unhealthyBecause,
    ends_at: isoOrNull(row.endsAt),
  });

const create = writeRoute({
  operationId: "createAllocation",
  method: "POST",
  path,
  tag,
  summary: "Allocate a node to a tenant: a named node, or a free one of an SKU at a site",
  permission: "write",
  right: "allocate",
  place: [
    { of: "node", body: "node_id" },
    { of: "site", body: "site_id" },
  ],
  body: AllocationCreate,
  status: 202,
  response: AllocationDetail,
  write: async ({ body, actor }, tx) => {
    if (body.allow_unhealthy_machine)
      mustHaveRight(actor, { operationId: "createAllocation", right: "allocate_unhealthy", place: "everywhere" });
    const row = await createAllocation(tx, body, actor.name);
    return { body: await toDetail(tx, row), audit: creationOf(row) };
  },
});

const createBatch = writeRoute({
  operationId: "createAllocationBatch",
  method: "POST",
  path: "/api/v1/admin/allocation-batches",
  tag,
  summary: "Allocate several free nodes of an SKU at a site to a tenant, all or none",
  permission: "write",
  right: "allocate",
  place: { of: "site", body: "site_id" },
  body: AllocationBatchCreate,
  status: 202,
  response: AllocationBatch,
  write: async (call, tx) => {
    const { body, actor } = call;
    const rows = await createAllocationBatch(tx, body, actor.name);
    // Each allocation has its own audit entry, so that the audit of an allocation shows who made it.
    for (const row of rows)
      await recordAudit(tx, { ...sourceOf(call), action: "createAllocation", reason: null, ...creationOf(row) });
    const { tenant, sku_id, count, same_rack } = body;
    return {
      body: { items: await toDetails(tx, rows) },
      audit: { target: `maas-sites/${body.site_id}`, details: { tenant, sku_id, count, same_rack } },
    };
  },
});

const list = readRoute({
  operationId: "listAllocations",
  method: "GET",
  path,
  tag,
  summary: "List allocations, newest first; with a node's id, the node's history",
  permission: "read",
  right: "read_allocations",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    node_id: NodeId.optional(),
    site_id: SiteId.optional(),
    hostname: Hostname.optional(),
    tenant: Tenant.optional(),
    login_user: LoginUser.optional(),
    status: AllocationStatus.optional(),
    ssh_key_id: SshKeyId.describe(
      "Allocations whose account follows the stored key, by its id or by a group; none that ends or has ended",
    ).optional(),
    ssh_key_group_id: SshKeyGroupId.describe(
      "Allocations whose account follows the key group; none that ends or has ended",
    ).optional(),
  }),
  status: 200,
  response: page(Allocation),
  read: async ({ query, actor, deps }) => {
    const rows = await listAllocations(
      deps.db,
      {
        nodeId: query.node_id,
        siteId: query.site_id,
        hostname: query.hostname,
        tenant: query.tenant,
        loginUser: query.login_user,
        status: query.status,
        sshKeyId: query.ssh_key_id,
        sshKeyGroupId: query.ssh_key_group_id,
        reach: actor,
      },
      { before: readBefore(query.cursor), limit: query.limit + 1 },
    );
    return pageOf(
      rows,
      query.limit,
      ({ allocation, at }) => [at, allocation.id],
      ({ allocation }) => toAllocation(allocation),
    );
  },
});

const get = readRoute({
  operationId: "getAllocation",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read an allocation with its SSH keys",
  permission: "read",
  right: "read_allocations",
  place: { of: "allocation", param: "id" },
  params: AllocationParams,
  status: 200,
  response: AllocationDetail,
  read: async ({ params, deps }) => toDetail(deps.db, await mustFindAllocation(deps.db, params.id)),
});

const grant = writeRoute({
  operationId: "grantAllocation",
  method: "POST",
  path: `${path}/{id}/grant`,
  tag,
  summary: "Have the agent make the account again after it failed",
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  params: AllocationParams,
  body: AllocationVerb,
  status: 202,
  response: AllocationDetail,
  write: async ({ params, body, actor }, tx) => {
    const { prior, now } = await grantAgain(tx, params.id, { actor: actor.name, reason: body.reason });
    const change = { prior: { status: prior.status, error_code: prior.errorCode }, expected: { status: "active" } };
    return { body: await toDetail(tx, now), audit: { ...auditOf(now, change), reason: body.reason } };
  },
});

const ending = {
  method: "POST",
  tag,
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  params: AllocationParams,
  status: 202,
  response: AllocationDetail,
} as const;
const changeOf = ({ status }: AllocationRow, forced: boolean) => ({
  prior: { status },
  expected: { status: "ended" },
  forced,
});

const release = writeRoute({
  ...ending,
  operationId: "releaseAllocation",
  path: `${path}/{id}/release`,
  summary: "End an allocation: its node is cleared of the tenant, and repaired if the release names a fault",
  body: AllocationRelease,
  write: async (call, tx) => {
    const { params, body, deps } = call;
    const { reason, machine_health_issue: issue = null, is_repair_tenant: isRepairTenant, repair_status } = body;
    const said = { issue, isRepairTenant, repairStatus: repair_status };
    const by = { ...sourceOf(call), reason, forced: false, said };
    const { prior, now, repair } = await releaseForRepair(tx, deps.workflows, params.id, by);
    const more = {
      ...changeOf(prior, false),
      issue,
      repair_id: repair?.id ?? null,
      repair_state: repair?.state ?? null,
    };
    return { body: await toDetail(tx, now), audit: { ...auditOf(now, more), reason } };
  },
});
const forceRelease = writeRoute({
  ...ending,
  operationId: "forceReleaseAllocation",
  path: `${path}/{id}/force-release`,
  summary: "End an allocation even if another operation holds its node; that operation is cancelled",
  body: AllocationVerb,
  write: async (call, tx) => {
    const { params, body, deps } = call;
    const by = { ...sourceOf(call), reason: body.reason, forced: true };
    const { prior, now } = await releaseAllocation(tx, deps.workflows, params.id, by);
    return { body: await toDetail(tx, now), audit: { ...auditOf(now, changeOf(prior, true)), reason: body.reason } };
  },
});

export const allocationRoutes = [create, createBatch, list, get, grant, release, forceRelease];
