import { matchesPattern } from "../../shared/events.ts";
import { hasPosition, listEventsOfStream } from "../db/queries/domain-events-list.ts";
import type { Reach } from "../db/queries/reach.ts";
import type { DomainEventRow } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import type { WakeSignal } from "../timing/wake-signal.ts";
import { cursorOf, toCloudEvent } from "./cloud-event.ts";
import type { EventFeed } from "./event-feed.ts";

const AT_ONCE = 200;

export interface StreamRequest {
  /** The position of the last event that the stream's client already has. */
  readonly after: bigint;
  /** The event types, or patterns of event types, that the client wants. If `types` is empty, the client wants events of all types. */
  readonly types: readonly string[];
  readonly subject: string | undefined;
  /** The reach of the stream's client, which gets no events of other sites or tenants. */
  readonly reach: Reach;
  readonly holder: string;
  readonly signal: AbortSignal;
  /** Says whether the client's token or session is still valid. The stream ends when the token or session is no longer valid. */
  readonly holds?: Holds;
}

interface Holds {
  isValid(): Promise<boolean>;
  follow(ended: () => void): () => void;
}

/** The longest silence and the longest duration of an event stream, in milliseconds. */
export interface StreamTimes {
  readonly heartbeatMs: number;
  readonly longestMs: number;
}
/**
 * An event stream ends after an hour, and its client opens another stream. An event stream also ends as soon as the token or session of its client is
 * no longer valid.
 */
const TIMES: StreamTimes = { heartbeatMs: 15_000, longestMs: 3_600_000 };

/**
 * Each server-sent event has the cursor of its CloudEvent as `id`, so a client that sends `Last-Event-ID` continues after that event. The hub reads
 * events from the database only as fast as the client takes them. A slow client uses no memory for waiting events, and its stream ends after an hour
 * like every other stream.
 */
export function eventStream(
  db: Db,
  feed: EventFeed,
  request: StreamRequest,
  times: StreamTimes = TIMES,
): ReadableStream<Uint8Array> {
  const { wake, leave } = feed.listen(request.holder);
  const ends = AbortSignal.any([request.signal, feed.closing, AbortSignal.timeout(times.longestMs)]);
  const next = messages(db, request, { wake, ends, heartbeatMs: times.heartbeatMs });
  const encoder = new TextEncoder();
  let open = true;
  let unfollow = (): void => undefined;
  const close = (): void => {
    open = false;
    unfollow();
    leave();
    wake.raise();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // The hub ends an event stream at once, even if the stream's client has not yet taken all data. If an event stream waited for its client
        // before it ended, a client that has stopped reading would keep the stream open for ever.
        const end = (): void => {
          if (!open) return;
          close();
          controller.close();
        };
        if (request.holds !== undefined) unfollow = request.holds.follow(end);
        if (ends.aborted) end();
        else ends.addEventListener("abort", end, { once: true });
      },
      async pull(controller) {
        try {
          const text = await next();
          if (open) controller.enqueue(encoder.encode(text));
        } catch (error) {
          if (!open) return;
          close();
          throw error;
        }
      },
      cancel: close,
    },
    { highWaterMark: 1 },
  );
}

/**
 * Returns a function that waits for the next text of the event stream. After a heartbeat interval without an event, the next text of the stream is a
 * comment.
 */
function messages(
  db: Db,
  request: StreamRequest,
  { wake, ends, heartbeatMs }: { wake: WakeSignal; ends: AbortSignal; heartbeatMs: number },
): () => Promise<string> {
  let after = request.after;
  /**
   * `read` is the last event that the hub has read from the database, whether or not the stream has sent the event. `told` is the last event whose
   * cursor the stream has sent to its client.
   */
  let read: DomainEventRow | undefined;
  let told: DomainEventRow | undefined;
  const heartbeat = (): string => {
    const moved = read !== told && read !== undefined ? `id: ${cursorOf(read)}\n` : "";
    told = read;
    return `: still here\n${moved}\n`;
  };
  return async () => {
    const due = performance.now() + heartbeatMs;
    while (!ends.aborted) {
      const rows = await listEventsOfStream(db, { after, limit: AT_ONCE, reach: request.reach });
      const last = rows.at(-1)?.event;
      // Retention may remove events that a slow client has not taken yet. If retention has removed the next events of a stream, the stream fails, and
      // its client learns the reason when it opens another stream.
      if (read !== undefined && last !== undefined && !(await hasPosition(db, after)))
        throw new Error("events were removed before the stream's reader took them");
      if (last !== undefined) {
        after = last.seq;
        read = last;
      }
      const wanted = rows.flatMap(({ event, seen }) => (seen && isWanted(request, event) ? [event] : []));
      // An event stream sends no event after its client's token has ended, even before the periodic check of the tokens ends the stream.
      if (wanted.length > 0 && (await request.holds?.isValid()) !== false) {
        told = wanted.at(-1);
        return wanted.map(message).join("");
      }
      const left = due - performance.now();
      if (left <= 0) return heartbeat();
      if (last === undefined) await wake.wait(left);
    }
    return "";
  };
}

const isWanted = ({ types, subject }: StreamRequest, row: DomainEventRow): boolean =>
  (types.length === 0 || types.some((pattern) => matchesPattern(pattern, row.type))) &&
  (subject === undefined || row.subject === subject);

function message(row: DomainEventRow): string {
  const event = toCloudEvent(row);
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
