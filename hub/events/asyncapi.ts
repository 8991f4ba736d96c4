import { z } from "zod";
import { EVENT_TYPES, EVENTS, type EventType } from "../../shared/events.ts";
import { VERSION } from "../../shared/version.ts";
import { AGENT_PROTOCOL } from "./agent-protocol.ts";
import { CloudEvent } from "./cloud-event.ts";

type Schema = Record<string, unknown>;

const schemaOf = (schema: z.ZodType): Schema => {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    unrepresentable: "any",
    target: "draft-2020-12",
  }) as Schema;
  return json;
};

/** Returns the schema of a CloudEvent with the data of one event type. */
const payloadOf = (type: EventType): Schema =>
  schemaOf(z.strictObject({ ...CloudEvent.shape, type: z.literal(type), data: EVENTS[type].data }));

const idOf = (type: EventType): string => type.replaceAll(/[._]/g, "-");

/** Generates the AsyncAPI 3.0 document from the catalogue of events (decision P5) and the frames of the agent's channel. */
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
      title: "Muster domain events, and the protocol of its agents",
      version: VERSION,
      description:
        "What happens to nodes and to the operations on them, as CloudEvents 1.0. Delivery is at least once; a repetition has the same id. The channel `agent` has the frames between the hub and the agents of its hosts.",
    },
    defaultContentType: "application/cloudevents+json",
    channels: {
      stream: channel(
        "/api/v1/admin/events/stream",
        "Server-sent events; Last-Event-ID or a cursor continues after an event.",
      ),
      ...AGENT_PROTOCOL.channels,
      webhook: channel(null, "POST requests to the address of each webhook, signed as Standard Webhooks."),
    },
    operations: {
      streamEvents: sends("stream", "Follow events over one HTTP response"),
      ...AGENT_PROTOCOL.operations,
      deliverEvents: sends("webhook", "Get events as signed requests"),
    },
    components: {
      messages: {
        ...AGENT_PROTOCOL.messages,
        ...eventMessages(),
      },
    },
  };
}

const eventMessages = (): Schema =>
  Object.fromEntries(
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
  );

/** Returns the catalogue of events as a table for docs/events.md. */
export const eventTable = (): string =>
  [
    "| type | subject | when |",
    "|---|---|---|",
    ...EVENT_TYPES.map((type) => `| \`${type}\` | \`${EVENTS[type].subject}\` | ${EVENTS[type].meaning} |`),
  ].join("\n");
