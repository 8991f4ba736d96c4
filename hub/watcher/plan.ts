/** The decisions of a poll, as pure functions. */

/** MAAS takes event ids from a sequence and commits them out of order, so the last few are read again (maas 2.15, decision M8). */
export const EVENT_OVERLAP = 50;
export const EVENTS_PER_REQUEST = 1000;

export const queryFrom = (cursor: number): number => Math.max(0, cursor - EVENT_OVERLAP);

/** How far a feed has been read: the newest event's id and its content. The content is null if it is not known. */
export interface FeedPlace {
  readonly cursor: number;
  readonly mark: string | null;
}
export interface FeedLook extends FeedPlace {
  /** True if the event ids went back, because MAAS was restored or its events were deleted. All machines must then be read again. */
  readonly reset: boolean;
  readonly changed: readonly string[];
}
interface FeedEvent {
  readonly id: number;
  readonly node: string;
  readonly type: string;
  readonly created: string;
}
/** The content of an event. If the same id has other content, it is another event, and the region's ids went back. */
export const wordOf = ({ node, type, created }: FeedEvent): string => `${node} ${created} ${type}`.slice(0, 200);

/**
 * Reads a feed answer. `seen` holds the content of already processed events in the overlap, by id. The overlap always includes the cursor's own
 * event. An answer without any event at or above the cursor therefore means that the ids went back. If the ids have passed the cursor again, an event
 * with a known id has other content. A hub without memory detects this if the cursor's own event is missing or has other content.
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

/** The machines that one poll reads again: changed ones, and ones that a stage waits on. */
export const toRead = (changed: readonly string[], waitedOn: readonly string[]): string[] =>
  [...new Set([...waitedOn, ...changed])].sort();

/** Full jitter over a doubling window of at most a minute. `random` is in [0, 1). */
export const failurePauseMs = (failures: number, intervalMs: number, random: number): number =>
  Math.round(intervalMs + random * Math.min(60_000, intervalMs * 2 ** Math.min(failures, 10)));

export const sweepIsDue = (sinceSweepMs: number | null, sweepIntervalMs: number): boolean =>
  sinceSweepMs === null || sinceSweepMs >= sweepIntervalMs;

/** The pause after a read, as a multiple of its duration. Reads for waiting stages thus keep a region busy at most a fifth of the time. */
export const breatherMs = (tookMs: number): number => 4 * tookMs;

/**
 * A machine that a stage waits on is read when the wait begins and when an event names it. Every twelfth poll reads all such machines, to find
 * changes without an event. Waiting stages thus cost MAAS at most a twelfth of the cost of reading all machines with each poll.
 */
export const LOOKS_PER_WAITED_READ = 12;
