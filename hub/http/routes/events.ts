import { z } from "zod";
import { page } from "../../../shared/api/onboardings.ts";
import { Json } from "../../../shared/json.ts";
import { listDomainEvents } from "../../db/queries/domain-events-list.ts";
import type { DomainEventRow } from "../../db/schema/index.ts";
import { PageQuery, pageOf, readCursor, writeCursor } from "../page.ts";
import { readRoute } from "../route.ts";

/** A domain event as a CloudEvent 1.0 (decision P5); `cursor` is an extension attribute: a reader that stops here goes on with it later. */
const CloudEvent = z.strictObject({
  specversion: z.literal("1.0"),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  subject: z.string(),
  time: z.string(),
  datacontenttype: z.literal("application/json"),
  cursor: z.string(),
  data: Json,
});

/** 18 digits: no more than PostgreSQL's bigint holds. */
const Position = z.tuple([z.string().regex(/^\d{1,18}$/)]);
const positionOf = (row: DomainEventRow): z.output<typeof Position> => [row.seq.toString()];

const listEvents = readRoute({
  operationId: "listDomainEvents",
  method: "GET",
  path: "/api/v1/admin/events",
  tag: "events",
  summary: "List domain events, oldest first; the cursor of the last one goes on after it, also later",
  permission: "read",
  query: PageQuery,
  status: 200,
  response: page(CloudEvent),
  read: async ({ query, deps }) => {
    const [after = "0"] = readCursor(query.cursor, Position) ?? [];
    const rows = await listDomainEvents(deps.db, { after: BigInt(after), limit: query.limit + 1 });
    return pageOf(rows, query.limit, positionOf, (row) => ({
      specversion: "1.0" as const,
      id: row.id,
      source: "muster/hub",
      type: row.type,
      subject: row.subject,
      time: row.occurredAt.toISOString(),
      datacontenttype: "application/json" as const,
      cursor: writeCursor(positionOf(row)),
      data: row.data as Json,
    }));
  },
});

export const eventRoutes = [listEvents];
