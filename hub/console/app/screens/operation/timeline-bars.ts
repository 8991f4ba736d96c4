import type { Segment, Timeline, TimelineStage } from "./operation-questions.ts";
import { foldsOf, idleOf, type Scale, type Span, scaleOf } from "./timeline-scale.ts";

export interface Bar extends Span {
  readonly segment: Segment;
  readonly isOpen: boolean;
}

/** One row of the timeline: a stage with its bars, and the usual length of the stage as a ghost. */
export interface Row {
  readonly stage: TimelineStage;
  readonly bars: readonly Bar[];
  /** Seconds that the stage has taken, without the time in which it waited for a person. */
  readonly seconds: number;
  /** Where the stage would be if it took as long as usual; null if the usual length is unknown. */
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

/** The work of the hub and of the host is never folded, but waits for others and for a person may be. */
const IDLE: ReadonlySet<Segment["state"]> = new Set(["waiting", "stopped"]);

function barsOf({ segments }: TimelineStage, now: number): Bar[] {
  return segments.map((segment) => {
    const from = ms(segment.began_at);
    const isOpen = segment.ended_at === null;
    return { segment, from, to: Math.max(from, segment.ended_at === null ? now : ms(segment.ended_at)), isOpen };
  });
}

/** Seconds of a stage by now. The hub's answer counted up to its own time, and an open segment has gone on since. */
function secondsOf(stage: TimelineStage, bars: readonly Bar[], since: number): number {
  const grows = bars.some(({ isOpen, segment }) => isOpen && segment.state !== "stopped");
  return stage.duration_seconds + (grows ? since : 0);
}

const expectedSeconds = (stages: readonly TimelineStage[]): number =>
  stages.reduce((sum, { state, usual }) => sum + (state === "expected" ? (usual?.median_seconds ?? 0) : 0), 0);

/** What is usually left by now: the stage under way uses up its share, and the expected stages keep theirs. */
function leftAt({ usual_seconds_left: left, stages }: Timeline, since: number): number | null {
  if (left === null) return null;
  const expected = expectedSeconds(stages);
  return expected + Math.max(0, left - expected - since);
}

/** Says whether a segment is open, or the operation waits for its turn. A failed operation goes on in this sense: it waits for a person. */
export const goesOn = ({ completed_at: at, stages }: Timeline): boolean =>
  at === null || stages.some(({ segments }) => segments.some(({ ended_at: end }) => end === null));

const lastOf = ({ completed_at: at, stages }: Timeline): number =>
  Math.max(
    0,
    ...[at, ...stages.flatMap(({ segments }) => segments.map(({ ended_at: end }) => end))].flatMap((end) =>
      end === null ? [] : [ms(end)],
    ),
  );

/** Lays out a timeline as it is at `now`, in milliseconds. A screen calls it each second while a segment is open, without asking the hub. */
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
