import { matchesPattern } from "../../shared/events.ts";
import { listDomainEvents } from "../db/queries/domain-events-list.ts";
import type { DomainEventRow } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import { toCloudEvent } from "./cloud-event.ts";
import type { EventFeed } from "./event-feed.ts";

const AT_ONCE = 200;
const HEARTBEAT_MS = 15_000;
/** A stream ends after this long and the client goes on with another: a token that was withdrawn does not read on for ever. */
const LONGEST_MS = 3_600_000;

export interface StreamRequest {
  /** Position of the last event that the reader has. */
  readonly after: bigint;
  /** Event types or patterns; an empty list is all. */
  readonly types: readonly string[];
  readonly subject: string | undefined;
  /** Aborted when the reader is gone. */
  readonly signal: AbortSignal;
}

/**
 * Server-sent events: each CloudEvent with its cursor as `id`, so that `Last-Event-ID` goes on where the reader was. Read from the outbox as fast as the
 * reader takes it: a slow one holds nothing but its place.
 */
export function eventStream(db: Db, feed: EventFeed, request: StreamRequest): ReadableStream<Uint8Array> {
  const { bell, leave } = feed.listen();
  const ends = AbortSignal.any([request.signal, feed.closing, AbortSignal.timeout(LONGEST_MS)]);
  ends.addEventListener("abort", () => bell.ring(), { once: true });
  const encoder = new TextEncoder();
  let after = request.after;
  const next = async (): Promise<string | null> => {
    while (!ends.aborted) {
      const rows = await listDomainEvents(db, { after, limit: AT_ONCE });
      const last = rows.at(-1);
      if (last === undefined) {
        await bell.heard(HEARTBEAT_MS);
        if (ends.aborted) return null;
        const late = await listDomainEvents(db, { after, limit: 1 });
        if (late.length === 0) return ": still here\n\n";
        continue;
      }
      after = last.seq;
      const wanted = rows.filter((row) => isWanted(request, row));
      if (wanted.length > 0) return wanted.map(message).join("");
    }
    return null;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const text = await next().catch((error: unknown) => {
          leave();
          throw error;
        });
        if (text !== null) return controller.enqueue(encoder.encode(text));
        leave();
        controller.close();
      },
      cancel: leave,
    },
    { highWaterMark: 1 },
  );
}

const isWanted = ({ types, subject }: StreamRequest, row: DomainEventRow): boolean =>
  (types.length === 0 || types.some((pattern) => matchesPattern(pattern, row.type))) &&
  (subject === undefined || row.subject === subject);

function message(row: DomainEventRow): string {
  const event = toCloudEvent(row);
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
