import { matchesPattern } from "../../shared/events.ts";
import { hasPosition, listDomainEvents } from "../db/queries/domain-events-list.ts";
import type { DomainEventRow } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import type { WakeSignal } from "../timing/wake-signal.ts";
import { cursorOf, toCloudEvent } from "./cloud-event.ts";
import type { EventFeed } from "./event-feed.ts";

const AT_ONCE = 200;

export interface StreamRequest {
  /** Position of the last event that the reader has. */
  readonly after: bigint;
  /** Event types or patterns; an empty list is all. */
  readonly types: readonly string[];
  readonly subject: string | undefined;
  /** Whose token asks. */
  readonly holder: string;
  /** Aborted when the reader is gone. */
  readonly signal: AbortSignal;
}

/** How long a stream is silent at most, and lasts at most; in milliseconds. */
export interface StreamTimes {
  readonly heartbeatMs: number;
  readonly longestMs: number;
}
/** A stream ends after an hour and the client goes on with another: a token that was withdrawn does not read on for ever. */
const TIMES: StreamTimes = { heartbeatMs: 15_000, longestMs: 3_600_000 };

/**
 * Server-sent events: each CloudEvent with its cursor as `id`, so that `Last-Event-ID` goes on where the reader was. Read from the outbox as fast as the
 * reader takes it: a slow one holds nothing but its place, and that no longer than the stream lasts, read or not.
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
  const close = (): void => {
    open = false;
    leave();
    wake.raise();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // By itself and not by the next pull: a reader that stopped to read would keep its place for ever.
        const end = (): void => {
          if (!open) return;
          close();
          controller.close();
        };
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

/** What a reader is sent next, as soon as there is something; a comment when it heard nothing for the heartbeat's time. */
function messages(
  db: Db,
  request: StreamRequest,
  { wake, ends, heartbeatMs }: { wake: WakeSignal; ends: AbortSignal; heartbeatMs: number },
): () => Promise<string> {
  let after = request.after;
  /** Last event that was read, whether it was wanted or not, and the last one whose cursor the reader has. */
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
      const rows = await listDomainEvents(db, { after, limit: AT_ONCE });
      const last = rows.at(-1);
      // A reader that takes its time may be overtaken by what is too old to be kept; it then begins anew, and is told why.
      if (read !== undefined && last !== undefined && !(await hasPosition(db, after)))
        throw new Error("events were removed before the stream's reader took them");
      if (last !== undefined) {
        after = last.seq;
        read = last;
      }
      const wanted = rows.filter((row) => isWanted(request, row));
      if (wanted.length > 0) {
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
