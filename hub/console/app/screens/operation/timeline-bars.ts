import type { Segment, Timeline, TimelineStage } from "./operation-questions.ts";
import { foldsOf, idleOf, type Scale, type Span, scaleOf } from "./timeline-scale.ts";

export interface Bar extends Span {
  readonly segment: Segment;
  readonly isOpen: boolean;
}

/** One row of the timeline: a stage with its bars, and a pale bar for the stage's usual duration. */
export interface Row {
  readonly stage: TimelineStage;
  readonly bars: readonly Bar[];
  /** The number of seconds that the stage has taken, without the time in which it waited for a person. */
  readonly seconds: number;
  /** Where a bar of the stage's usual duration is drawn; null if the usual duration is unknown. */
  readonly usual: Span | null;
}

export interface Drawing {
  readonly rows: readonly Row[];
  readonly scale: Scale;
  readonly from: number;
  readonly now: number;
  /** Seconds that the operation usually still takes. */
  readonly left: number | null;
}

const ms = (iso: string): number => Date.parse(iso);

/** The timeline may shorten the times in which an operation waits for others or for a person, but never those in which the hub or the host works. */
const IDLE: ReadonlySet<Segment["state"]> = new Set(["waiting", "stopped"]);

function barsOf({ segments }: TimelineStage, now: number): Bar[] {
  return segments.map((segment) => {
    const from = ms(segment.began_at);
    const isOpen = segment.ended_at === null;
    return { segment, from, to: Math.max(from, segment.ended_at === null ? now : ms(segment.ended_at)), isOpen };
  });
}

/**
 * Seconds of a stage by now. The hub's answer counts the duration of a stage up to the time of the answer, so the screen adds the time since the
 * answer while the stage goes on.
 */
function secondsOf(stage: TimelineStage, bars: readonly Bar[], since: number): number {
  const grows = bars.some(({ isOpen, segment }) => isOpen && segment.state !== "stopped");
  return stage.duration_seconds + (grows ? since : 0);
}

const expectedSeconds = (stages: readonly TimelineStage[]): number =>
  stages.reduce((sum, { state, usual }) => sum + (state === "expected" ? (usual?.median_seconds ?? 0) : 0), 0);

/**
 * The usual remaining time of the operation: the time since the hub's answer reduces the part of the present stage, but not the parts of the stages
 * that have not begun.
 */
function leftAt({ usual_seconds_left: left, stages }: Timeline, since: number): number | null {
  if (left === null) return null;
  const expected = expectedSeconds(stages);
  return expected + Math.max(0, left - expected - since);
}

/**
 * Says whether the operation still goes on: it has not ended, or a segment of its timeline has not ended. A failed operation that waits for a person
 * also counts as going on, so its timeline still grows.
 */
export const goesOn = ({ completed_at: at, stages }: Timeline): boolean =>
  at === null || stages.some(({ segments }) => segments.some(({ ended_at: end }) => end === null));

const lastOf = ({ completed_at: at, stages }: Timeline): number =>
  Math.max(
    0,
    ...[at, ...stages.flatMap(({ segments }) => segments.map(({ ended_at: end }) => end))].flatMap((end) =>
      end === null ? [] : [ms(end)],
    ),
  );

/**
 * Computes the layout of an operation's timeline at the time `now`, in milliseconds. While a segment of the timeline has not ended, the screen
 * computes the layout again each second, without a request to the hub.
 */
export function drawingOf(timeline: Timeline, now: number): Drawing {
  const from = ms(timeline.requested_at);
  const open = goesOn(timeline);
  const end = Math.max(from + 1, open ? now : lastOf(timeline));
  const since = open ? Math.max(0, (now - ms(timeline.now)) / 1000) : 0;
  const bars = timeline.stages.map((stage) => barsOf(stage, end));
  const left = leftAt(timeline, since);
  let next = end + Math.max(0, (left ?? 0) - expectedSeconds(timeline.stages)) * 1000;
  const rows = timeline.stages.map((stage, n): Row => {
    const own = bars[n] ?? [];
    const begin = stage.state === "expected" ? next : (own[0]?.from ?? end);
    const median = (stage.usual?.median_seconds ?? 0) * 1000;
    if (stage.state === "expected" && left !== null) next += median;
    const isPlaced = stage.usual !== null && (stage.state !== "expected" || left !== null);
    return {
      stage,
      bars: own,
      seconds: secondsOf(stage, own, since),
      usual: isPlaced ? { from: begin, to: begin + median } : null,
    };
  });
  const all = bars.flat();
  const busy = all.filter(({ segment }) => !IDLE.has(segment.state));
  const cuts = all.flatMap((bar) => [bar.from, bar.to]);
  const folds = foldsOf(idleOf(busy, cuts, from, end), from, end);
  return { rows, scale: scaleOf({ from, to: end, until: next, folds }), from, now: end, left };
}
