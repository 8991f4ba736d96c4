import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { EventPattern } from "../../../shared/events.ts";
import { lastSettled, listDomainEvents } from "../../db/queries/domain-events-list.ts";
import { CloudEvent, positionOf, toCloudEvent } from "../../events/cloud-event.ts";
import type { EventFeed } from "../../events/event-feed.ts";
import { eventStream } from "../../events/event-stream.ts";
import { PageQuery, pageOf } from "../page.ts";
import { readRoute, streamRoute } from "../route.ts";
import { mustHavePosition, positionOfCursor } from "./event-position.ts";

const tag = "events";
/**
 * The largest number of event streams that one hub serves at once. Each event stream holds a client's connection and causes queries for new events.
 */
const MOST_STREAMS = 100;
/**
 * The largest number of event streams that one hub serves to one token at once. Because of `MOST_STREAMS_OF_ONE`, a client that forgets to close its
 * event streams cannot block clients with another token.
 */
export const MOST_STREAMS_OF_ONE = 20;

const listEvents = readRoute({
  operationId: "listDomainEvents",
  method: "GET",
  path: "/api/v1/admin/events",
  tag,
  summary: "List domain events, oldest first; the cursor of the last one continues the list",
  permission: "read",
  right: "read_events",
  place: "list",
  query: PageQuery,
  status: 200,
  response: page(CloudEvent),
  read: async ({ query, actor, deps }) => {
    const after = positionOfCursor(query.cursor);
    const rows = await listDomainEvents(deps.db, { after, limit: query.limit + 1, reach: actor });
    // The hub checks the position of the client's cursor after it has read the page's events. A check of the cursor's position after the read proves
    // that retention had removed none of the page's events before the read.
    await mustHavePosition(deps.db, after);
    return pageOf(rows, query.limit, positionOf, toCloudEvent);
  },
});

const streamEvents = streamRoute({
  operationId: "streamDomainEvents",
  method: "GET",
  path: "/api/v1/admin/events/stream",
  tag,
  summary: "Follow domain events as server-sent events; Last-Event-ID or a cursor continues after an event",
  permission: "read",
  right: "read_events",
  place: "list",
  query: z.strictObject({
    /** The event with which an event stream begins for a client without a cursor. */
    from: z.enum(["now", "oldest"]).default("now"),
    cursor: PageQuery.shape.cursor,
    /** The event types that the client wants, or patterns of event types, separated by commas. */
    types: z
      .string()
      .transform((text) => text.split(","))
      .pipe(z.array(EventPattern).max(20))
      .optional(),
    subject: z.string().min(1).max(200).optional(),
  }),
  status: 200,
  response: CloudEvent,
  stream: async ({ query, deps, actor }, { lastEventId, signal, holds }) => {
    const cursor = lastEventId ?? query.cursor;
    const fresh = cursor === undefined && query.from === "now";
    const after = fresh ? await lastSettled(deps.db) : positionOfCursor(cursor);
    if (!fresh) await mustHavePosition(deps.db, after);
    mustHaveRoom(deps.events, actor.name);
    const { types = [], subject } = query;
    return eventStream(deps.db, deps.events, {
      after,
      types,
      subject,
      reach: actor,
      holder: actor.name,
      signal,
      holds,
    });
  },
});

/**
 * No other code runs between the count of event streams and the opening of a new stream, so simultaneous requests cannot exceed the limit of streams.
 */
function mustHaveRoom(feed: EventFeed, holder: string): void {
  if (feed.listeners >= MOST_STREAMS)
    throw new ApiError(
      "unavailable",
      `This hub already serves ${MOST_STREAMS} streams. Try again later, or use another hub.`,
    );
  if (feed.listenersOf(holder) >= MOST_STREAMS_OF_ONE)
    throw new ApiError(
      "rate_limited",
      `The token ${holder} already has ${MOST_STREAMS_OF_ONE} event streams on this hub. Close one, or request several event types in one stream.`,
      { retryAfterSeconds: 10 },
    );
}

export const eventRoutes = [listEvents, streamEvents];
