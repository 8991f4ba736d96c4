/** What a look at a site decides, as functions of values. */

/** Ids are given out by a sequence and committed out of order: the last few are read again (maas 2.15, decision M8). */
export const EVENT_OVERLAP = 50;
export const EVENTS_PER_REQUEST = 1000;

export const queryFrom = (cursor: number): number => Math.max(0, cursor - EVENT_OVERLAP);

/** How far a feed has been read: the newest event's id, and what it said; null where that is not known. */
export interface FeedPlace {
  readonly cursor: number;
  readonly mark: string | null;
}
export interface FeedLook extends FeedPlace {
  /** The feed went back: MAAS was restored or its events were deleted. Everything must be looked at again. */
  readonly reset: boolean;
  readonly changed: readonly string[];
}
interface FeedEvent {
  readonly id: number;
  readonly node: string;
  readonly type: string;
  readonly created: string;
}
/** What an event said: the same id with another word is another event, of a region whose ids went back. */
export const wordOf = ({ node, type, created }: FeedEvent): string => `${node} ${created} ${type}`.slice(0, 200);

/**
 * Reads a feed answer. `seen` holds what the events of the overlap said that were acted on before, by id. The overlap always holds the cursor's own event,
 * so an answer without any event at or above it means that the sequence went back; one that has come as far again by now is told by its words. That the
 * cursor's own event says something else, or is not there, tells it to a hub that has seen none of them.
 */
export function readFeed(
  { cursor, mark }: FeedPlace,
  events: readonly FeedEvent[],
  seen: ReadonlyMap<number, string>,
  newest: FeedEvent | null,
): FeedLook {
  const newestId = newest?.id ?? 0;
  const retold = events.some((event) => seen.has(event.id) && seen.get(event.id) !== wordOf(event));
  const unmarked = mark !== null && !events.some((event) => event.id === cursor && wordOf(event) === mark);
  const changed = new Set(
    events.filter((event) => seen.get(event.id) !== wordOf(event) && event.node !== "").map((event) => event.node),
  );
  return {
    cursor: newestId,
    mark: newest === null ? null : wordOf(newest),
    reset: newestId < cursor || retold || unmarked,
    changed: [...changed],
  };
}

/** Which machines one look reads again: those that changed and those that somebody waits on. */
export const toRead = (changed: readonly string[], waitedOn: readonly string[]): string[] =>
  [...new Set([...waitedOn, ...changed])].sort();

/** Full jitter over a doubling window, a minute at most; `random` in [0, 1). */
export const failurePauseMs = (failures: number, intervalMs: number, random: number): number =>
  Math.round(intervalMs + random * Math.min(60_000, intervalMs * 2 ** Math.min(failures, 10)));

export const sweepIsDue = (sinceSweepMs: number | null, sweepIntervalMs: number): boolean =>
  sinceSweepMs === null || sinceSweepMs >= sweepIntervalMs;

/** A read that took this long is not repeated before this much time has passed, so that waiting keeps a region busy a fifth of the time at most. */
export const breatherMs = (tookMs: number): number => 4 * tookMs;

/**
 * Machines that are waited on are read when the wait begins, and when an event names them; all of them only with each so many looks, for what MAAS tells
 * no event of. So a look costs MAAS the same, a twelfth at most, whether none is waited on or all.
 */
export const LOOKS_PER_WAITED_READ = 12;
