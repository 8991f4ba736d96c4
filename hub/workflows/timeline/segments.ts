import type { SegmentState } from "../../../shared/api/operation-timeline.ts";
import { isFailed, type StageEventStatus, type WorkflowStatus } from "../../../shared/workflow-status.ts";

/** An event of a workflow's stages, as the database keeps it. */
export interface PastEvent {
  readonly stage: string;
  readonly attempt: number;
  readonly status: StageEventStatus;
  readonly message: string | null;
  readonly at: Date;
}

export interface Segment {
  readonly stage: string;
  readonly state: SegmentState;
  readonly attempt: number;
  readonly began: Date;
  /** The end of a segment of the workflow's history; null while the segment goes on. */
  readonly ended: Date | null;
  readonly reason: string | null;
}

/**
 * What a workflow does after an event. The course `forward` means that the workflow carries out its stages. The course `halted` means that a stage of
 * the workflow has failed for good, or that the workflow has left a stage unfinished, by itself or by an operator's verb. In the course `halted`,
 * only the next event tells whether the workflow rested, waited for its turn, or undid its stages. The course `undoing` means that the workflow
 * undoes its stages. The hub writes no event when it begins to undo a stage, so while a workflow undoes its stages, the time before each event counts
 * for the stage of that event.
 */
type Course = "forward" | "halted" | "undoing";

const courseAfter = (course: Course, { status }: PastEvent): Course => {
  if (status === "started") return "forward";
  if (status === "failed" || status === "returned") return "halted";
  return course === "forward" ? "forward" : "undoing";
};

/** Maps the status of an event to what a workflow that carries out its stages does after the event; null if the event ends the stage. */
const FORWARD: Readonly<Record<StageEventStatus, SegmentState | null>> = {
  started: "working",
  waiting: "waiting",
  retrying: "retrying",
  succeeded: null,
  skipped: null,
  failed: null,
  returned: null,
  compensated: null,
};

const TURN = "Waits for its turn";
const changesCourse = ({ status }: PastEvent): boolean => status === "started" || status === "returned";

interface Present {
  readonly status: WorkflowStatus;
  /** The stage that the workflow undoes now; null if it undoes none. */
  readonly undoing: string | null;
}

type What = Pick<Segment, "state" | "stage" | "reason">;

/**
 * Returns what the workflow did between two successive events. `doneBetween` returns null if the workflow did nothing between the events, because it
 * had ended, or if it went on at once.
 */
function doneBetween(event: PastEvent, next: PastEvent, course: Course): What | null {
  const { stage, message } = event;
  if (course === "forward") {
    if (event.status === "started" && next.status === "started") return { state: "waiting", stage, reason: TURN };
    const state = FORWARD[event.status];
    return state === null ? null : { state, stage, reason: state === "working" ? null : message };
  }
  if (!changesCourse(next)) return { state: "undoing", stage: next.stage, reason: undoReason(event) };
  if (course === "undoing") return { state: "undoing", stage, reason: undoReason(event) };
  if (event.status === "failed") return { state: "stopped", stage, reason: message };
  return { state: "waiting", stage: next.stage, reason: TURN };
}

/** Returns what the workflow has been doing since its last event. */
function doneSince(event: PastEvent, course: Course, { status, undoing }: Present): What | null {
  const { stage, message } = event;
  if (status === "compensating") return { state: "undoing", stage: undoing ?? stage, reason: undoReason(event) };
  if (isFailed(status)) return { state: "stopped", stage, reason: message };
  if (status === "pending") return { state: "waiting", stage, reason: TURN };
  if (status !== "running") return null;
  const state = course === "forward" ? FORWARD[event.status] : "waiting";
  return { state: state ?? "working", stage, reason: state === "working" || state === null ? null : message };
}

const undoReason = ({ status, message }: PastEvent): string | null =>
  status === "waiting" || status === "retrying" ? message : null;

/**
 * Divides a workflow's history into segments that cover all the time in which the workflow did something. Every event ends a segment of the
 * workflow's history and begins the next segment. The argument `events` is the workflow's history, oldest first. A segment of a workflow's history
 * that took no time is left out, unless the segment still lasts.
 */
export function segmentsOf(events: readonly PastEvent[], present: Present): Segment[] {
  const segments: Segment[] = [];
  let course: Course = "forward";
  events.forEach((event, index) => {
    course = courseAfter(course, event);
    const next = events[index + 1];
    const ended = next?.at ?? null;
    const what = next === undefined ? doneSince(event, course, present) : doneBetween(event, next, course);
    if (what === null || (ended !== null && ended <= event.at)) return;
    const { attempt } = what.state === "undoing" ? { attempt: next?.attempt ?? 1 } : event;
    segments.push({ ...what, attempt, began: event.at, ended });
  });
  return segments;
}
