import { z } from "zod";
import { AgentFrame, HubFrame } from "../../shared/protocol/frames.ts";
import { MAX_FRAME_BYTES, PROTOCOL_VERSION } from "../../shared/protocol/version.ts";

type Schema = Record<string, unknown>;

/** What each frame from an agent to the hub says. */
const FROM_AGENT: Readonly<Record<AgentFrame["type"], string>> = {
  hello: "The first frame of a channel: who the agent is, and which tasks its journal has",
  heartbeat: "The agent is alive",
  "trust.known": "The number of the last statement about the hub's keys that the agent has verified",
  readiness: "A readiness signal with conditions of the host",
  inventory: "The hardware and the operating system of the host",
  "task.ack": "The agent has received, begun or finished a task",
  "task.rejected": "The agent refuses an order, and never carries it out",
  "task.progress": "How far a task is",
  "task.result": "The result of a task; the agent repeats it until the hub has accepted it",
  "task.cancelled": "A task has stopped because the hub asked for it",
  "task.not_cancellable": "A task goes on although the hub asked it to stop, because it cannot stop without harm",
};

/** What each frame from the hub to an agent says. */
const FROM_HUB: Readonly<Record<HubFrame["type"], string>> = {
  welcome: "The answer to a hello; before it the hub sends no task",
  "heartbeat.ack": "The answer to a heartbeat, with the time until the next one",
  "trust.update": "Signed statements about the hub's keys",
  "readiness.ack": "The hub has stored a readiness signal",
  "task.offer": "A signed order for a task",
  "task.result_ack": "The hub has accepted the result of a task",
  "task.cancel": "The agent shall stop a task",
};

const idOf = (type: string): string => `agent-${type.replaceAll(/[._]/g, "-")}`;

const schemaOf = (schema: z.ZodType): Schema => {
  const json = z.toJSONSchema(schema, { unrepresentable: "any", target: "draft-2020-12", io: "input" });
  const { $schema: _dialect, ...rest } = json as Schema;
  return rest;
};

const typeOf = (frame: (typeof AgentFrame.options)[number] | (typeof HubFrame.options)[number]) =>
  frame.shape.type.value;

/** The frames that one side of the channel sends, as messages of the AsyncAPI document. */
const messagesOf = (
  frames: readonly ((typeof AgentFrame.options)[number] | (typeof HubFrame.options)[number])[],
  meanings: Readonly<Record<string, string>>,
): Record<string, Schema> =>
  Object.fromEntries(
    frames.map((frame) => [
      idOf(typeOf(frame)),
      {
        name: typeOf(frame),
        title: typeOf(frame),
        summary: meanings[typeOf(frame)],
        contentType: "application/json",
        payload: schemaOf(frame),
      },
    ]),
  );

const fromAgent = messagesOf(AgentFrame.options, FROM_AGENT);
const fromHub = messagesOf(HubFrame.options, FROM_HUB);
const referTo = (place: string, names: readonly string[]): Schema[] =>
  names.map((name) => ({ $ref: `${place}/${name}` }));

/** The channel between hub and agent, with its frames in both directions, as parts of the AsyncAPI document. */
export const AGENT_PROTOCOL = {
  messages: { ...fromAgent, ...fromHub },
  channels: {
    agent: {
      address: "/internal/v1/nodes/{id}/connect",
      description: `A WebSocket by mutual TLS, with one frame of the protocol's version ${PROTOCOL_VERSION} in each text message of at most ${MAX_FRAME_BYTES} bytes. An agent that gets no WebSocket sends and receives the same frames by POST .../sessions, POST .../frames and GET .../tasks/wait.`,
      parameters: { id: { description: "The id of the node, which the client certificate also names" } },
      messages: Object.fromEntries(
        Object.keys({ ...fromAgent, ...fromHub }).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
      ),
    },
  },
  operations: {
    receiveFromAgent: {
      action: "receive",
      channel: { $ref: "#/channels/agent" },
      summary: "Frames from an agent to the hub",
      messages: referTo("#/channels/agent/messages", Object.keys(fromAgent)),
    },
    sendToAgent: {
      action: "send",
      channel: { $ref: "#/channels/agent" },
      summary: "Frames from the hub to an agent",
      messages: referTo("#/channels/agent/messages", Object.keys(fromHub)),
    },
  },
};
