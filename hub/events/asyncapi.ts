import { z } from "zod";
import { EVENT_TYPES, EVENTS, type EventType } from "../../shared/events.ts";
import { VERSION } from "../../shared/version.ts";
import { CloudEvent } from "./cloud-event.ts";

type Schema = Record<string, unknown>;

const schemaOf = (schema: z.ZodType): Schema => {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    unrepresentable: "any",
    target: "draft-2020-12",
  }) as Schema;
  return json;
};

/** The CloudEvent envelope with the data of one event type. */
const payloadOf = (type: EventType): Schema =>
  schemaOf(z.strictObject({ ...CloudEvent.shape, type: z.literal(type), data: EVENTS[type].data }));

const idOf = (type: EventType): string => type.replaceAll(/[._]/g, "-");

/** AsyncAPI 3.0, generated from the catalogue of events (decision P5). The document describes exactly the events of the catalogue. */
export function asyncApiDocument(): Schema {
  const messages = Object.fromEntries(
    EVENT_TYPES.map((type) => [idOf(type), { $ref: `#/components/messages/${idOf(type)}` }]),
  );
  const channel = (address: string | null, description: string): Schema => ({ address, description, messages });
  const sends = (name: string, summary: string): Schema => ({
    action: "send",
    channel: { $ref: `#/channels/${name}` },
    summary,
  });
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Muster domain events",
      version: VERSION,
      description:
        "What happens to nodes and to the operations on them, as CloudEvents 1.0. Delivery is at least once; a repetition has the same id.",
    },
    defaultContentType: "application/cloudevents+json",
    channels: {
      stream: channel(
        "/api/v1/admin/events/stream",
        "Server-sent events; Last-Event-ID or a cursor continues after an event.",
      ),
      webhook: channel(null, "POST requests to the address of each webhook, signed as Standard Webhooks."),
    },
    operations: {
      streamEvents: sends("stream", "Follow events over one HTTP response"),
      deliverEvents: sends("webhook", "Get events as signed requests"),
    },
    components: {
      messages: Object.fromEntries(
        EVENT_TYPES.map((type) => [
          idOf(type),
          {
            name: type,
            title: type,
            summary: EVENTS[type].meaning,
            description: `Subject: ${EVENTS[type].subject}`,
            contentType: "application/cloudevents+json",
            payload: payloadOf(type),
          },
        ]),
      ),
    },
  };
}

/** The catalogue of events as a table, which docs/events.md contains. */
export const eventTable = (): string =>
  [
    "| type | subject | when |",
    "|---|---|---|",
    ...EVENT_TYPES.map((type) => `| \`${type}\` | \`${EVENTS[type].subject}\` | ${EVENTS[type].meaning} |`),
  ].join("\n");
