import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { RoceAssignment, type RoceAssignmentRow, RoceAssignmentUpsert } from "../../../shared/api/sites.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type MaasRoceAssignment, maasRoceAssignments } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite, SiteParams } from "./maas-sites.ts";

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
  summary: "Write RoCE addresses, all or none; a row of the same host and interface is replaced",
  permission: "write",
  params: SiteParams,
  body: RoceAssignmentUpsert,
  status: 200,
  response: z.strictObject({ written: z.int() }),
  write: async ({ params, body }, tx) => {
    await mustFindSite(tx, params.id);
    await refuseDoubles(tx, params.id, body.items);
    await tx
      .insert(maasRoceAssignments)
      .values(
        body.items.map((item) => ({
          siteId: params.id,
          hostname: item.hostname,
          interface: item.interface,
          ipv4Cidr: item.ipv4_cidr,
        })),
      )
      .onConflictDoUpdate({
        target: [maasRoceAssignments.siteId, maasRoceAssignments.hostname, maasRoceAssignments.interface],
        set: { ipv4Cidr: sql`excluded.ipv4_cidr`, updatedAt: sql`now()` },
      });
    return {
      body: { written: body.items.length },
      audit: { target: `maas-sites/${params.id}/roce-assignments`, details: { rows: body.items.length } },
    };
  },
});

/** Each row at fault is named: twice in the request, or an address that another host's row has. */
async function refuseDoubles(tx: Tx, siteId: SiteId, items: readonly RoceAssignmentRow[]): Promise<void> {
  const errors: { pointer: string; message: string }[] = [];
  const places = new Map<string, number>();
  const addresses = new Map<string, number>();
  items.forEach((item, index) => {
    const place = `${item.hostname} ${item.interface}`;
    const samePlace = places.get(place);
    const sameAddress = addresses.get(item.ipv4_cidr);
    if (samePlace !== undefined)
      errors.push({ pointer: `/items/${index}`, message: `is for the same host and interface as items[${samePlace}]` });
    if (sameAddress !== undefined)
      errors.push({ pointer: `/items/${index}/ipv4_cidr`, message: `is the same as items[${sameAddress}].ipv4_cidr` });
    places.set(place, index);
    addresses.set(item.ipv4_cidr, index);
  });
  const taken = await tx
    .select()
    .from(maasRoceAssignments)
    .where(and(eq(maasRoceAssignments.siteId, siteId), inArray(maasRoceAssignments.ipv4Cidr, [...addresses.keys()])));
  for (const row of taken) {
    const index = addresses.get(row.ipv4Cidr);
    if (index === undefined || places.has(`${row.hostname} ${row.interface}`)) continue;
    errors.push({
      pointer: `/items/${index}/ipv4_cidr`,
      message: `belongs to ${row.hostname} ${row.interface} already`,
    });
  }
  if (errors.length > 0)
    throw new ApiError("validation_failed", `Nothing was written: ${errors.length} rows are at fault.`, { errors });
}

const listRoceAssignments = readRoute({
  operationId: "listRoceAssignments",
  method: "GET",
  path,
  tag,
  summary: "List RoCE addresses by host and interface",
  permission: "read",
  params: SiteParams,
  query: PageQuery,
  status: 200,
  response: page(RoceAssignment),
  read: async ({ params, query, deps }) => {
    await mustFindSite(deps.db, params.id);
    const after = readCursor(query.cursor, 2);
    const t = maasRoceAssignments;
    const where = and(
      eq(t.siteId, params.id),
      after === null ? undefined : sql`(${t.hostname}, ${t.interface}) > (${after[0] ?? ""}, ${after[1] ?? ""})`,
    );
    const rows = await deps.db
      .select()
      .from(t)
      .where(where)
      .orderBy(asc(t.hostname), asc(t.interface))
      .limit(query.limit + 1);
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
  params: z.strictObject({ id: SiteId, assignment_id: z.uuid() }),
  status: 204,
  response: z.null(),
  write: async ({ params }, tx) => {
    const rows = await tx
      .delete(maasRoceAssignments)
      .where(and(eq(maasRoceAssignments.id, params.assignment_id), eq(maasRoceAssignments.siteId, params.id)))
      .returning({ id: maasRoceAssignments.id });
    if (rows.length === 0)
      throw new ApiError("not_found", `Site ${params.id} has no RoCE assignment ${params.assignment_id}.`);
    return { body: null, audit: { target: `roce-assignments/${params.assignment_id}` } };
  },
});

export const roceAssignmentRoutes = [upsertRoceAssignments, listRoceAssignments, deleteRoceAssignment];
