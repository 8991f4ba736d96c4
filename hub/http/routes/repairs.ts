import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import {
  OnlineRepairCreate,
  Repair,
  RepairClaim,
  RepairCreate,
  RepairDetail,
  RepairReport,
  RepairRequest,
  RepairValidation,
  RepairVerb,
} from "../../../shared/api/repairs.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { NodeId, RepairId, SiteId } from "../../../shared/ids.ts";
import { RepairMode, RepairStateName } from "../../../shared/repair.ts";
import { readAllocation } from "../../db/queries/allocations.ts";
import { listCases, readCase } from "../../db/queries/repair-cases.ts";
import { listRepairEvents } from "../../db/queries/repair-events.ts";
import { lastVerdictOfAllocation } from "../../db/queries/sanitization-records.ts";
import type { RepairCase } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { claimRepair } from "../../repair/claim-repair.ts";
import { checksOf, closeRepair, validateRepair } from "../../repair/close-repair.ts";
import { openByOperator, openOnlineRepair } from "../../repair/open-repair.ts";
import { reportRepair } from "../../repair/report-repair.ts";
import { escalateRepair, requestRepair, withdrawRequest } from "../../repair/steer-repair.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { readRepairMachine } from "./repair-machine.ts";
import { toRepair, toRepairDetail } from "./repair-rows.ts";

const RepairParams = z.strictObject({ id: RepairId });
const tag = "repairs";
const path = "/api/v1/admin/repairs";
const place = { of: "repair", param: "id" } as const;

async function detailOf(db: Db | Tx, row: RepairCase): Promise<z.input<typeof RepairDetail>> {
  const { id, nodeId, allocationId, state } = row;
  const allocation = allocationId === null ? null : await readAllocation(db, allocationId);
  const reporter =
    allocation === null
      ? null
      : { status: allocation.status, verdict: await lastVerdictOfAllocation(db, nodeId, allocation.id) };
  const checks = state === "repaired" ? await checksOf(db, row) : [];
  // A case stays for years, and its repair team has nothing to do with the machine any more.
  const machine = row.endedAt === null ? await readRepairMachine(db, nodeId) : null;
  return toRepairDetail(row, { machine, events: await listRepairEvents(db, id), checks, reporter });
}

const list = readRoute({
  operationId: "listRepairs",
  method: "GET",
  path,
  tag,
  summary: "List the repairs of machines, newest first; a repair system sees the requested ones and its own",
  permission: "read",
  right: "read_repairs",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    node_id: NodeId.optional(),
    site_id: SiteId.optional(),
    hostname: Hostname.optional(),
    mode: RepairMode.optional(),
    state: RepairStateName.optional(),
    claimed_by: z.string().min(1).max(256).optional(),
    open: z.enum(["true", "false"]).describe("true: those that have not ended").optional(),
  }),
  status: 200,
  response: page(Repair),
  read: async ({ query, actor, deps }) => {
    const { node_id: nodeId, site_id: siteId, hostname, mode, state, claimed_by: claimedBy } = query;
    const open = query.open === undefined ? undefined : query.open === "true";
    const filter = { nodeId, siteId, hostname, mode, state, claimedBy, open, reach: actor };
    const rows = await listCases(deps.db, filter, { before: readBefore(query.cursor), limit: query.limit + 1 });
    return pageOf(
      rows,
      query.limit,
      ({ row, at }) => [at, row.id],
      ({ row }) => toRepair(row),
    );
  },
});

const get = readRoute({
  operationId: "getRepair",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a repair with its timeline, and with what keeps a repaired machine in repair",
  permission: "read",
  right: "read_repairs",
  place,
  params: RepairParams,
  status: 200,
  response: RepairDetail,
  read: async ({ params, deps: { db } }) => {
    const row = await readCase(db, params.id);
    if (row === null) throw new ApiError("not_found", `There is no repair ${params.id}.`);
    return detailOf(db, row);
  },
});

async function written(tx: Tx, row: RepairCase, reason: string, more: Readonly<Record<string, unknown>> = {}) {
  const { id, nodeId, hostname, mode, state, attempt } = row;
  const details = { node_id: nodeId, hostname, mode, state, attempt, ...more };
  return { body: await detailOf(tx, row), audit: { target: `repairs/${id}`, reason, details } };
}

const open = writeRoute({
  operationId: "openRepair",
  method: "POST",
  path,
  tag,
  summary: "Say that a node is faulty, so that it takes no tenant until its repair is closed",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", body: "node_id" },
  body: RepairCreate,
  status: 201,
  response: RepairDetail,
  write: async ({ body, actor }, tx) =>
    written(tx, await openByOperator(tx, body, actor.name), body.reason, { issue: body.machine_health_issue }),
});

const openOnline = writeRoute({
  operationId: "openOnlineRepair",
  method: "POST",
  path: "/api/v1/admin/online-repairs",
  tag,
  summary: "Have a machine repaired while its tenant keeps it, with what the tenant has acknowledged",
  permission: "write",
  right: "operate_nodes",
  place: { of: "allocation", body: "allocation_id" },
  body: OnlineRepairCreate,
  status: 201,
  response: RepairDetail,
  write: async ({ body, actor }, tx) => {
    const { acknowledgements, machine_health_issue: issue, reason } = body;
    return written(tx, await openOnlineRepair(tx, body, actor.name), reason, { acknowledgements, issue });
  },
});

const request = writeRoute({
  operationId: "requestRepair",
  method: "POST",
  path: `${path}/{id}/request`,
  tag,
  summary:
    "Let a repair system claim the machine; after an attempt with new evidence, and only within the limit of attempts",
  permission: "write",
  right: "operate_nodes",
  place,
  params: RepairParams,
  body: RepairRequest,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body, actor }, tx) =>
    written(tx, await requestRepair(tx, params.id, { ...body, actor: actor.name }), body.reason, {
      evidence: body.evidence ?? null,
    }),
});

const withdraw = writeRoute({
  operationId: "withdrawRepairRequest",
  method: "POST",
  path: `${path}/{id}/withdraw`,
  tag,
  summary: "Take back a request that nobody has claimed; the machine stays out of service",
  permission: "write",
  right: "operate_nodes",
  place,
  params: RepairParams,
  body: RepairVerb,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body: { reason }, actor }, tx) =>
    written(tx, await withdrawRequest(tx, params.id, { actor: actor.name, reason }), reason),
});

const claim = writeRoute({
  operationId: "claimRepair",
  method: "POST",
  path: `${path}/{id}/claim`,
  tag,
  summary: "Claim a machine for its repair, with an account on the host if wanted, or extend the claim",
  permission: "write",
  right: "repair_nodes",
  place,
  params: RepairParams,
  body: RepairClaim,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body, actor }, tx) =>
    written(tx, await claimRepair(tx, params.id, actor, body), body.reason, {
      hours: body.hours,
      access: body.access?.login_user ?? null,
    }),
});

const report = writeRoute({
  operationId: "reportRepair",
  method: "POST",
  path: `${path}/{id}/report`,
  tag,
  summary: "Report what came of an attempt, which ends the claim; only completed leads out of repair",
  permission: "write",
  right: "repair_nodes",
  place,
  params: RepairParams,
  body: RepairReport,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body, actor }, tx) =>
    written(tx, await reportRepair(tx, params.id, actor, body), body.reason, { outcome: body.outcome }),
});

const escalate = writeRoute({
  operationId: "escalateRepair",
  method: "POST",
  path: `${path}/{id}/escalate`,
  tag,
  summary: "Give the machine to a person of the provider, and end the present attempt",
  permission: "write",
  right: "operate_nodes",
  place,
  params: RepairParams,
  body: RepairVerb,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body: { reason }, actor }, tx) =>
    written(tx, await escalateRepair(tx, params.id, { actor: actor.name, reason }), reason),
});

const validate = writeRoute({
  operationId: "validateRepair",
  method: "POST",
  path: `${path}/{id}/validate`,
  tag,
  summary: "Record what the tests of a repaired machine showed",
  permission: "write",
  right: "operate_nodes",
  place,
  params: RepairParams,
  body: RepairValidation,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body, actor }, tx) =>
    written(tx, await validateRepair(tx, params.id, { ...body, actor: actor.name }), body.reason, {
      result: body.result,
    }),
});

const close = writeRoute({
  operationId: "closeRepair",
  method: "POST",
  path: `${path}/{id}/close`,
  tag,
  summary: "Take a repaired machine out of repair, after a clean sanitization record and a passed validation",
  permission: "write",
  right: "operate_nodes",
  place,
  params: RepairParams,
  body: RepairVerb,
  status: 200,
  response: RepairDetail,
  write: async ({ params, body: { reason }, actor }, tx) =>
    written(tx, await closeRepair(tx, params.id, { actor: actor.name, reason }), reason),
});

export const repairRoutes = [list, get, open, openOnline, request, withdraw, claim, report, escalate, validate, close];
