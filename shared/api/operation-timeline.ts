import { z } from "zod";
import { NodeId, SiteId, WorkflowId } from "../ids.ts";
import { WorkflowStatus } from "../workflow-status.ts";
import { OperationKind } from "./operations.ts";
import { Timestamp } from "./values.ts";

/**
 * What an operation did during a segment, which is a part of the time of one stage.
 * - `working`: a hub or a host carried out the stage.
 * - `waiting`: the stage waited for MAAS, the agent, an unavailable service, or its turn. The field `reason` of a `waiting` segment names what the
 *   stage waited for.
 * - `retrying`: the stage had failed, and the hub was about to repeat it or repeated it. The field `reason` of a `retrying` segment names the failure
 *   of the stage.
 * - `undoing`: the hub undid what the stage had done.
 * - `stopped`: the stage had failed for good, and the operation waited for a person.
 */
export const SEGMENT_STATES = ["working", "waiting", "retrying", "undoing", "stopped"] as const;
export type SegmentState = (typeof SEGMENT_STATES)[number];

const TimelineSegment = z.strictObject({
  state: z.enum(SEGMENT_STATES),
  attempt: z.int(),
  began_at: Timestamp,
  /** Null while the segment goes on. */
  ended_at: Timestamp.nullable(),
  reason: z.string().nullable(),
});

/** The state of a stage in an operation's timeline: an `expected` stage has not begun yet, an `undone` stage was carried out and then undone. */
const TIMELINE_STATES = ["expected", "under_way", "succeeded", "skipped", "returned", "failed", "undone"] as const;

const UsualDuration = z.strictObject({
  /** The number of finished operations from which the durations come. */
  runs: z.int(),
  median_seconds: z.number(),
  p90_seconds: z.number(),
});
export type UsualDuration = z.output<typeof UsualDuration>;

export const TimelineStage = z.strictObject({
  stage: z.string(),
  state: z.enum(TIMELINE_STATES),
  segments: z.array(TimelineSegment),
  /** The seconds of all segments of the stage but the `stopped` ones, because a wait for a person says nothing about the stage's usual length. */
  duration_seconds: z.number(),
  /** The deadline of the stage that is under way. */
  deadline: Timestamp.nullable(),
  /** The last message of the stage. */
  message: z.string().nullable(),
  /** How long the stage took in earlier operations of the same kind at the same site; null if the hub knows no such operation. */
  usual: UsualDuration.nullable(),
});
export type TimelineStage = z.output<typeof TimelineStage>;

/**
 * An operation's stages with the time that each of them took, in the order in which the operation entered them, and the stages that are still to
 * come.
 */
export const OperationTimeline = z.strictObject({
  operation_id: WorkflowId,
  kind: OperationKind,
  status: WorkflowStatus,
  node_id: NodeId,
  site_id: SiteId.nullable(),
  hostname: z.string(),
  requested_at: Timestamp,
  completed_at: Timestamp.nullable(),
  /** The database's time when the hub answers; with it, a client measures how long the segment that has not ended has lasted. */
  now: Timestamp,
  stages: z.array(TimelineStage),
  /** Seconds that the stage under way and the expected stages usually still take; null if unknown, or if the operation does not go on by itself. */
  usual_seconds_left: z.number().nullable(),
  /** True if the operation's history was too long, so that the API's answer lacks the oldest events. */
  cut: z.boolean(),
});
export type OperationTimeline = z.output<typeof OperationTimeline>;
