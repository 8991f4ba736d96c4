import { z } from "zod";
import { Json } from "../../shared/json.ts";
import { writeCursor } from "../db/cursor.ts";
import type { DomainEventRow } from "../db/schema/index.ts";

/**
 * A domain event as a CloudEvent 1.0 (decision P5). With the extension attribute `cursor` of an event, a client can later read the events after this
 * event.
 */
export const CloudEvent = z.strictObject({
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
export type CloudEvent = z.output<typeof CloudEvent>;

/** The position of an event in the list of events. The position of an event has at most 18 digits, so that it fits into PostgreSQL's bigint. */
export const Position = z.tuple([z.string().regex(/^\d{1,18}$/)]);
export const positionOf = (row: DomainEventRow): z.output<typeof Position> => [row.seq.toString()];

export const cursorOf = (row: DomainEventRow): string => writeCursor(positionOf(row));

export const toCloudEvent = (row: DomainEventRow): CloudEvent => ({
  specversion: "1.0",
  id: row.id,
  source: "muster/hub",
  type: row.type,
  subject: row.subject,
  time: row.occurredAt.toISOString(),
  datacontenttype: "application/json",
  cursor: cursorOf(row),
  data: row.data as Json,
});
