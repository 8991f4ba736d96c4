/** A span of time, for example one without work that the timeline shortens. Times are in milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * A part of the axis. Within one part of the timeline's axis, equal times have equal widths. The `start` and `width` of a part of the timeline are
 * fractions of the timeline's whole axis.
 */
interface Part extends Span {
  readonly start: number;
  readonly width: number;
  readonly kind: "time" | "fold" | "future";
}

export interface Scale {
  readonly parts: readonly Part[];
  /** Returns the position of a time on the timeline's axis, from 0 to 1. A time outside the timeline's axis gets the position of the nearer end. */
  at(time: number): number;
}

const FOLD_WIDTH = 0.07;
const FUTURE_WIDTH = 0.28;
/** A shorter time is never folded. */
const LEAST_FOLD_MS = 5 * 60_000;

/**
 * Chooses the idle spans that the timeline's axis shortens: those that are longer than twice all the time that keeps its length. Shorter idle spans
 * are judged first, so waits that are usual for the operation keep their length, and one wait over night does not make all other bars too short to
 * see.
 */
export function foldsOf(idle: readonly Span[], from: number, to: number): Span[] {
  const lengthOf = (span: Span): number => span.to - span.from;
  const rising = [...idle].sort((a, b) => lengthOf(a) - lengthOf(b));
  let kept = to - from - rising.reduce((sum, span) => sum + lengthOf(span), 0);
  const first = rising.findIndex((span) => {
    if (lengthOf(span) > Math.max(LEAST_FOLD_MS, 2 * kept)) return true;
    kept += lengthOf(span);
    return false;
  });
  return first < 0 ? [] : rising.slice(first).sort((a, b) => a.from - b.from);
}

/**
 * Returns the spans between `from` and `to` that no span in `busy` covers, split at the times `cuts`, so that each span lies within one segment of a
 * stage.
 */
export function idleOf(busy: readonly Span[], cuts: readonly number[], from: number, to: number): Span[] {
  const points = [...new Set([from, ...busy.flatMap((span) => [span.from, span.to]), ...cuts, to])]
    .filter((point) => point >= from && point <= to)
    .sort((a, b) => a - b);
  return points.flatMap((point, n) => {
    const next = points[n + 1];
    if (next === undefined || busy.some((span) => span.from <= point && span.to >= next)) return [];
    return [{ from: point, to: next }];
  });
}

/** Makes the axis of a timeline. The axis of the timeline shows the expected time from now up to `until` in a part of its own, with its own scale. */
export function scaleOf({ from, to, until, folds }: Span & { until: number; folds: readonly Span[] }): Scale {
  const future = until > to ? FUTURE_WIDTH : 0;
  const foldWidth = Math.min(FOLD_WIDTH, 0.6 / Math.max(1, folds.length));
  const past = 1 - future - folds.length * foldWidth;
  const length = Math.max(1, to - from - folds.reduce((sum, fold) => sum + fold.to - fold.from, 0));
  const parts: Part[] = [];
  const add = (span: Span, width: number, kind: Part["kind"]): void => {
    const last = parts.at(-1);
    if (span.to > span.from)
      parts.push({ ...span, start: last === undefined ? 0 : last.start + last.width, width, kind });
  };
  let at = from;
  for (const fold of folds) {
    add({ from: at, to: fold.from }, (past * (fold.from - at)) / length, "time");
    add(fold, foldWidth, "fold");
    at = fold.to;
  }
  add({ from: at, to }, (past * (to - at)) / length, "time");
  add({ from: to, to: until }, future, "future");
  return { parts, at: (time) => placeIn(parts, time) };
}

function placeIn(parts: readonly Part[], time: number): number {
  const part = parts.find(({ to }) => time <= to) ?? parts.at(-1);
  if (part === undefined) return 0;
  const share = Math.min(1, Math.max(0, (time - part.from) / (part.to - part.from)));
  return part.start + share * part.width;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30].map((count) => count * DAY),
];

export interface Tick {
  readonly time: number;
  readonly at: number;
}

/** Returns the axis marks, which are at round durations since the begin of the axis and at least `apart` from each other, as a fraction of the axis. */
export function ticksOf({ parts }: Scale, apart: number): Tick[] {
  const origin = parts[0]?.from ?? 0;
  const ticks: Tick[] = [];
  const add = (tick: Tick): void => {
    const last = ticks.at(-1);
    if (tick.at <= 1 - apart / 2 && (last === undefined || tick.at - last.at >= apart)) ticks.push(tick);
  };
  for (const { from, to, start, width } of parts.filter(({ kind }) => kind === "time")) {
    const step = STEPS.find((one) => (one / (to - from)) * width >= apart) ?? Number.POSITIVE_INFINITY;
    if (from === origin) add({ time: from, at: start });
    if (!Number.isFinite(step)) continue;
    for (let time = origin + Math.ceil((from - origin) / step) * step; time <= to; time += step)
      add({ time, at: start + ((time - from) / (to - from)) * width });
  }
  return ticks;
}
