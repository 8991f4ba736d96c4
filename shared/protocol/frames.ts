import { z } from "zod";
import { NodeId, TaskId } from "../ids.ts";
import { Int4, PositiveInt4 } from "../int4.ts";
import { Inventory } from "../inventory.ts";
import { boundedJson } from "../json.ts";
import { ReadinessSignal } from "../readiness.ts";
import { SignedOrder } from "../tasks/order.ts";
import { MOST_STATEMENTS, TrustChain } from "../trust.ts";

/**
 * This file holds the schemas of all messages between hub and agent. A WebSocket and its fallback, a long poll over HTTP, carry the same frames
 * between hub and agent. The agent's first frame is `hello`, which contains the digest of its journal of tasks. The hub sends no task to an agent
 * before the hub has answered the agent's `hello` with `welcome`.
 */
export const JOURNAL_STATES = ["received", "started", "finished", "reported"] as const;
export type JournalState = (typeof JOURNAL_STATES)[number];

const taskRef = { task_id: TaskId, epoch: PositiveInt4 };

/** A frame's progress report may be as large as the largest one of any task type: a drain's list of users who are still logged in. */
const Progress = boundedJson({ depth: 6, values: 500, characters: 16 * 1024 });
/** A frame with a task's result may be as large as the largest result of any task type: a residue snapshot of `MAX_SNAPSHOT_BYTES`. */
const Result = boundedJson({ depth: 8, values: 24_000, characters: 320 * 1024 });

/** The reasons for which the agent refuses a task's order. The agent never runs an order that it has refused. */
const ORDER_REJECTIONS = [
  "bad_signature",
  "wrong_node",
  "expired",
  "replayed",
  "input_mismatch",
  "unsupported_task",
  "invalid_input",
] as const;
export const OrderRejection = z.enum(ORDER_REJECTIONS);
export type OrderRejection = z.output<typeof OrderRejection>;

/**
 * The schema of a frame accepts the reply of a task of any type. The hub checks each reply against the reply schema of the task's type in the task
 * catalogue.
 */
export const WireReply = z.discriminatedUnion("ok", [
  z.strictObject({ ok: z.literal(true), result: Result }),
  z.strictObject({ ok: z.literal(false), error: z.string().min(1).max(64), message: z.string().max(4096) }),
]);
export type WireReply = z.output<typeof WireReply>;

export const Hello = z.strictObject({
  type: z.literal("hello"),
  protocol_version: Int4,
  agent_version: z.string().max(64),
  node_id: NodeId,
  generation: Int4,
  boot_id: z.string().min(1).max(64),
  journal: z.array(z.strictObject({ ...taskRef, state: z.enum(JOURNAL_STATES) })).max(1000),
});
export type Hello = z.output<typeof Hello>;

export const AgentFrame = z.discriminatedUnion("type", [
  Hello,
  z.strictObject({ type: z.literal("heartbeat"), seq: Int4 }),
  /**
   * The number of the last statement about the hub's keys that the agent has verified and trusts. The agent sends the frame `trust.known` only in
   * answer to the frame `trust.update`.
   */
  z.strictObject({ type: z.literal("trust.known"), sequence: z.int().min(0).max(MOST_STATEMENTS) }),
  z.strictObject({ type: z.literal("readiness"), signal: ReadinessSignal }),
  z.strictObject({ type: z.literal("inventory"), inventory: Inventory }),
  z.strictObject({ type: z.literal("task.ack"), ...taskRef, state: z.enum(JOURNAL_STATES) }),
  z.strictObject({
    type: z.literal("task.rejected"),
    ...taskRef,
    reason: OrderRejection,
    message: z.string().max(1024),
  }),
  z.strictObject({ type: z.literal("task.progress"), ...taskRef, seq: Int4, progress: Progress }),
  z.strictObject({ type: z.literal("task.result"), ...taskRef, reply: WireReply }),
  z.strictObject({ type: z.literal("task.cancelled"), ...taskRef }),
  z.strictObject({ type: z.literal("task.not_cancellable"), ...taskRef, message: z.string().max(1024) }),
]);
export type AgentFrame = z.output<typeof AgentFrame>;

export const Welcome = z.strictObject({
  type: z.literal("welcome"),
  protocol_version: z.int(),
  session_epoch: z.int().min(1),
  heartbeat_ttl_ms: z.int().min(100),
  hub_version: z.string(),
  hub_time: z.iso.datetime({ offset: true }),
});
export type Welcome = z.output<typeof Welcome>;

export const HubFrame = z.discriminatedUnion("type", [
  Welcome,
  z.strictObject({ type: z.literal("heartbeat.ack"), seq: z.int().min(0), heartbeat_ttl_ms: z.int().min(100) }),
  z.strictObject({ type: z.literal("trust.update"), statements: TrustChain }),
  z.strictObject({ type: z.literal("readiness.ack"), signal_id: z.uuid() }),
  z.strictObject({ type: z.literal("task.offer"), order: SignedOrder }),
  /**
   * The frame `task.result_ack` has the member `accepted` only for tasks that take effect after the hub has accepted their result
   * (`effectOnceAccepted`). The member `accepted` is false when the hub ended or cancelled the task's delivery before the result reached the hub.
   */
  z.strictObject({ type: z.literal("task.result_ack"), ...taskRef, accepted: z.boolean().optional() }),
  z.strictObject({ type: z.literal("task.cancel"), ...taskRef }),
]);
export type HubFrame = z.output<typeof HubFrame>;
