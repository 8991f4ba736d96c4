import { asc, gt } from "drizzle-orm";
import { z } from "zod";
import { page } from "../../../shared/api/onboardings.ts";
import { Json } from "../../../shared/json.ts";
import { domainEvents } from "../../db/schema/index.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute } from "../route.ts";

/** A domain event as a CloudEvent 1.0 (decision P5). */
const CloudEvent = z.strictObject({
  specversion: z.literal("1.0"),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  subject: z.string(),
  time: z.string(),
  datacontenttype: z.literal("application/json"),
  data: Json,
});

const listEvents = readRoute({
  operationId: "listDomainEvents",
  method: "GET",
  path: "/api/v1/admin/events",
  tag: "events",
  summary: "List domain events, oldest first; keep the cursor to go on later",
  permission: "read",
  query: PageQuery,
  status: 200,
  response: page(CloudEvent),
  read: async ({ query, deps }) => {
    const after = readCursor(query.cursor, 1);
    const seq = /^\d{1,18}$/.test(after?.[0] ?? "") ? BigInt(after?.[0] ?? "0") : 0n;
    const rows = await deps.db
      .select()
      .from(domainEvents)
      .where(gt(domainEvents.seq, seq))
      .orderBy(asc(domainEvents.seq))
      .limit(query.limit + 1);
    return pageOf(
      rows,
      query.limit,
      (row) => [row.seq.toString()],
      (row) => ({
        specversion: "1.0" as const,
        id: row.id,
        source: "muster/hub",
        type: row.type,
        subject: row.subject,
        time: row.occurredAt.toISOString(),
        datacontenttype: "application/json" as const,
        data: row.data as Json,
      }),
    );
  },
});

export const eventRoutes = [listEvents];
