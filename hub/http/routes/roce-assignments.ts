import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { RoceAssignment, RoceAssignmentUpsert, RoceAssignmentWritten } from "../../../shared/api/sites.ts";
import { SiteId } from "../../../shared/ids.ts";
import {
  deleteRoceAssignment as deleteRow,
  listRoceAssignmentsAfter,
  lockRoceRows,
  writeRoceRows,
} from "../../db/queries/roce-assignments.ts";
import type { MaasRoceAssignment } from "../../db/schema/index.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite, SiteParams } from "./maas-sites.ts";
import { planRoceUpsert } from "./roce-upsert.ts";

const tag = "roce-assignments";
const path = "/api/v1/admin/maas-sites/{id}/roce-assignments";

const toAssignment = (row: MaasRoceAssignment): z.input<typeof RoceAssignment> => ({
  id: row.id,
  site_id: row.siteId,
  hostname: row.hostname,
  interface: row.interface,
  ipv4_cidr: row.ipv4Cidr,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

const upsertRoceAssignments = writeRoute({
  operationId: "upsertRoceAssignments",
  method: "POST",
  path,
  tag,
  summary:
    "Write RoCE addresses; a row replaces an earlier one of the same host and interface, and a wrong row does not stop the others",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: RoceAssignmentUpsert,
  status: 200,
  response: RoceAssignmentWritten,
  write: async ({ params, body }, tx) => {
    await mustFindSite(tx, params.id);
    const rows = body.items.flatMap((item) => ("row" in item ? [item.row] : []));
    const { outcomes, changes } = planRoceUpsert(body.items, await lockRoceRows(tx, params.id, rows));
    await writeRoceRows(tx, params.id, changes);
    const failed = outcomes.filter(({ outcome }) => outcome === "failed").length;
    const answer = { written: changes.length, failed, items: [...outcomes] };
    return {
      body: answer,
      audit: {
        target: `maas-sites/${params.id}/roce-assignments`,
        details: { rows: body.items.length, written: changes.length, failed },
      },
    };
  },
});

const listRoceAssignments = readRoute({
  operationId: "listRoceAssignments",
  method: "GET",
  path,
  tag,
  summary: "List RoCE addresses by host and interface",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  query: PageQuery,
  status: 200,
  response: page(RoceAssignment),
  read: async ({ params, query, deps }) => {
    await mustFindSite(deps.db, params.id);
    const after = readCursor(query.cursor, 2);
    const rows = await listRoceAssignmentsAfter(deps.db, params.id, after, query.limit + 1);
    return pageOf(rows, query.limit, (row) => [row.hostname, row.interface], toAssignment);
  },
});

const deleteRoceAssignment = writeRoute({
  operationId: "deleteRoceAssignment",
  method: "DELETE",
  path: `${path}/{assignment_id}`,
  tag,
  summary: "Remove one RoCE address",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: z.strictObject({ id: SiteId, assignment_id: z.uuid() }),
  status: 204,
  response: z.null(),
  write: async ({ params }, tx) => {
    if (!(await deleteRow(tx, params.id, params.assignment_id)))
      throw new ApiError("not_found", `Site ${params.id} has no RoCE assignment ${params.assignment_id}.`);
    return { body: null, audit: { target: `roce-assignments/${params.assignment_id}` } };
  },
});

export const roceAssignmentRoutes = [upsertRoceAssignments, listRoceAssignments, deleteRoceAssignment];
