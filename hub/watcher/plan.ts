/** What a look at a site decides, as functions of values. */

/** Ids are given out by a sequence and committed out of order: the last few are read again (contract 2.15, decision M8). */
export const EVENT_OVERLAP = 50;
export const EVENTS_PER_REQUEST = 1000;

export const queryFrom = (cursor: number): number => Math.max(0, cursor - EVENT_OVERLAP);

export interface FeedLook {
  readonly cursor: number;
  /** The feed went back behind the cursor: MAAS was restored or its events were deleted. Everything must be looked at again. */
  readonly reset: boolean;
  readonly changed: readonly string[];
}

/**
 * Reads a feed answer. `seen` holds ids of the overlap that were acted on before. The overlap always holds the cursor's own event, so an
 * answer without any event at or above it means that the sequence went back.
 */
export function readFeed(
  cursor: number,
  events: readonly { id: number; node: string }[],
  seen: ReadonlySet<number>,
  newest: number,
): FeedLook {
  const changed = new Set(
    events.filter((event) => !seen.has(event.id) && event.node !== "").map((event) => event.node),
  );
  return { cursor: newest < cursor ? newest : Math.max(cursor, newest), reset: newest < cursor, changed: [...changed] };
}

/** Which machines one look reads again: those that changed and those that somebody waits on. */
export const toRead = (changed: readonly string[], waitedOn: readonly string[]): string[] =>
  [...new Set([...waitedOn, ...changed])].sort();

/** Full jitter over a doubling window, a minute at most; `random` in [0, 1). */
export const failurePauseMs = (failures: number, intervalMs: number, random: number): number =>
  Math.round(intervalMs + random * Math.min(60_000, intervalMs * 2 ** Math.min(failures, 10)));

export const sweepIsDue = (lastSweepAt: Date | null, now: Date, sweepIntervalMs: number): boolean =>
  lastSweepAt === null || now.getTime() - lastSweepAt.getTime() >= sweepIntervalMs;

/** A read that took this long is not repeated before this much time has passed, so that waiting keeps a region busy a fifth of the time at most. */
export const breatherMs = (tookMs: number): number => 4 * tookMs;
