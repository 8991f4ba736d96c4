import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { LIFECYCLE_COLUMNS, LIFECYCLE_KINDS, LifecycleEntry } from "../../../shared/api/node-lifecycle.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { oneOrMore } from "../../../shared/api/query-values.ts";
import { NodeId } from "../../../shared/ids.ts";
import { writeCursor } from "../../db/cursor.ts";
import { type LifecyclePlace, listLifecycle } from "../../db/queries/node-lifecycle.ts";
import { readNode } from "../../db/queries/nodes.ts";
import type { Db } from "../../db/tx.ts";
import { csvLine } from "../csv.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute } from "../route.ts";

const path = "/api/v1/admin/nodes/{id}/lifecycle";
const NodeParams = z.strictObject({ id: NodeId });
/** The largest number of entries in one CSV answer; the hub reads the entries in pages of `ROWS_AT_ONCE`. */
const MOST_ROWS = 20_000;
const ROWS_AT_ONCE = 1_000;

const TIME = /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/;
const Place = z.tuple([z.string().regex(TIME), z.enum(LIFECYCLE_KINDS), z.string().max(200)]);
function placeIn(cursor: string | undefined): LifecyclePlace | null {
  const [at, kind, id] = readCursor(cursor, Place) ?? [];
  return at === undefined || kind === undefined || id === undefined ? null : [at, kind, id];
}

async function mustFind(db: Db, id: NodeId): Promise<void> {
  if ((await readNode(db, id)) === null) throw new ApiError("not_found", `There is no node ${id}.`);
}

const exportLifecycle = readRoute({
  operationId: "exportNodeLifecycle",
  method: "GET",
  path,
  tag: "nodes",
  summary:
    "Export what happened to a node, oldest or newest first: operations, stages, allocations, tasks, records, events, overrides",
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  params: NodeParams,
  query: z.strictObject({
    ...pageQuery,
    kind: oneOrMore(z.enum(LIFECYCLE_KINDS), "The kind of the entry").optional(),
    order: z.enum(["oldest", "newest"]).describe("Which entries come first").default("oldest"),
  }),
  status: 200,
  response: page(LifecycleEntry),
  read: async ({ params, query, deps }) => {
    await mustFind(deps.db, params.id);
    const after = placeIn(query.cursor);
    const rows = await listLifecycle(deps.db, params.id, {
      after,
      limit: query.limit + 1,
      newestFirst: query.order === "newest",
      kinds: query.kind,
    });
    return pageOf(
      rows,
      query.limit,
      ({ place }) => place,
      ({ entry }) => entry,
    );
  },
});

/** Returns the last line of a CSV answer that does not contain all entries. */
const cutOff = (last: LifecyclePlace): string =>
  csvLine([
    "",
    "more",
    writeCursor(last),
    ...Array(5).fill(null),
    "The node has more entries. Ask again with this id as the cursor.",
  ]);

const exportCsv = readRoute({
  operationId: "exportNodeLifecycleCsv",
  method: "GET",
  path: `${path}/csv`,
  tag: "nodes",
  summary: `Export what happened to a node as CSV, oldest first, with at most ${MOST_ROWS} entries`,
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  params: NodeParams,
  query: z.strictObject({ cursor: pageQuery.cursor }),
  status: 200,
  produces: "text/csv",
  response: z.string(),
  read: async ({ params, query, deps }) => {
    await mustFind(deps.db, params.id);
    let text = csvLine(LIFECYCLE_COLUMNS);
    let after = placeIn(query.cursor);
    for (let read = 0; read < MOST_ROWS; read += ROWS_AT_ONCE) {
      const rows = await listLifecycle(deps.db, params.id, { after, limit: ROWS_AT_ONCE });
      for (const { entry } of rows) text += csvLine(LIFECYCLE_COLUMNS.map((column) => entry[column]));
      after = rows.at(-1)?.place ?? after;
      if (rows.length < ROWS_AT_ONCE) return text;
    }
    return after === null ? text : text + cutOff(after);
  },
});

export const nodeLifecycleRoutes = [exportLifecycle, exportCsv];
