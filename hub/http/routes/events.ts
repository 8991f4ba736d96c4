import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { EventPattern } from "../../../shared/events.ts";
import { hasPosition, lastSettled, listDomainEvents } from "../../db/queries/domain-events-list.ts";
import type { Db } from "../../db/tx.ts";
import { CloudEvent, Position, positionOf, toCloudEvent } from "../../events/cloud-event.ts";
import { eventStream } from "../../events/event-stream.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, streamRoute } from "../route.ts";

const tag = "events";
/** Of one hub: each holds a connection and asks the database when there is news. */
const MOST_STREAMS = 100;

/** The position that a reader goes on from; 0 without a cursor. Throws `position_gone` when what came after it may have been removed. */
async function positionAfter(db: Db, cursor: string | undefined): Promise<bigint> {
  const [after] = readCursor(cursor, Position) ?? [];
  if (after === undefined) return 0n;
  const position = BigInt(after);
  if (await hasPosition(db, position)) return position;
  throw new ApiError(
    "position_gone",
    "The events after this cursor were removed, as they were too old. Read the state that you keep anew, then begin without a cursor.",
  );
}

const listEvents = readRoute({
  operationId: "listDomainEvents",
  method: "GET",
  path: "/api/v1/admin/events",
  tag,
  summary: "List domain events, oldest first; the cursor of the last one goes on after it, also later",
  permission: "read",
  query: PageQuery,
  status: 200,
  response: page(CloudEvent),
  read: async ({ query, deps }) => {
    const after = await positionAfter(deps.db, query.cursor);
    const rows = await listDomainEvents(deps.db, { after, limit: query.limit + 1 });
    return pageOf(rows, query.limit, positionOf, toCloudEvent);
  },
});

const streamEvents = streamRoute({
  operationId: "streamDomainEvents",
  method: "GET",
  path: "/api/v1/admin/events/stream",
  tag,
  summary: "Follow domain events as server-sent events; Last-Event-ID or a cursor goes on after an event",
  permission: "read",
  query: z.strictObject({
    /** Where to begin without a cursor. */
    from: z.enum(["now", "oldest"]).default("now"),
    cursor: PageQuery.shape.cursor,
    /** Types or patterns, separated by commas. */
    types: z
      .string()
      .transform((text) => text.split(","))
      .pipe(z.array(EventPattern).max(20))
      .optional(),
    subject: z.string().min(1).max(200).optional(),
  }),
  status: 200,
  response: CloudEvent,
  stream: async ({ query, deps }, { lastEventId, signal }) => {
    if (deps.events.listeners >= MOST_STREAMS)
      throw new ApiError("unavailable", `This hub serves ${MOST_STREAMS} streams already. Try again, or another hub.`);
    const cursor = lastEventId ?? query.cursor;
    const fresh = cursor === undefined && query.from === "now";
    const after = fresh ? await lastSettled(deps.db) : await positionAfter(deps.db, cursor);
    return eventStream(deps.db, deps.events, { after, types: query.types ?? [], subject: query.subject, signal });
  },
});

export const eventRoutes = [listEvents, streamEvents];
